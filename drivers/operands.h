/* What the conformance check reduces: elements and operations, with results that are exact. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "layouts.h"

enum { INTS_OF_BLOCK = BLOCK_BYTES / (int)sizeof(int), PRIME = 10007 };

/*
 * Elements of a predefined type or, with a layout, of a derived one: six integers each, at `places`
 * in steps of `extent` integers. The operation is MPI's or, with a function, one of ours.
 */
struct operand {
    const char *name;
    MPI_Datatype type;
    int per_block; /* elements that hold BLOCK_BYTES */
    int real;      /* filled with numbers of type double, else with integers */
    MPI_Op op;
    const struct layout *layout;
    MPI_User_function *function;
    int commutes;
    int places[INTS_OF_BLOCK], extent;
};

/* What the functions below work on; MPI tells them a datatype that they could not take apart. */
static const struct operand *current_operand;

static int *place_of(void *elements, int element, int number) {
    return (int *)elements + element * current_operand->extent + current_operand->places[number];
}

static void add_up(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int element = 0; element < *count; ++element)
        for (int i = 0; i < INTS_OF_BLOCK; ++i)
            *place_of(inout, element, i) += *place_of(in, element, i);
}

/* Pairs (a, b) stand for t -> at + b modulo a prime; `in` is applied first. Does not commute. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int element = 0; element < *count; ++element) {
        for (int i = 0; i < INTS_OF_BLOCK; i += 2) {
            int *a = place_of(inout, element, i), *b = place_of(inout, element, i + 1);
            *b = (*a * *place_of(in, element, i + 1) + *b) % PRIME;
            *a = *a * *place_of(in, element, i) % PRIME;
        }
    }
}

static const struct operand operands[] = {
    {.name = "int sum", .type = MPI_INT, .per_block = 6, .op = MPI_SUM},
    {.name = "composed negative lower bound",
     .per_block = 1,
     .layout = &negative_layout,
     .function = compose,
     .places = {-4, -3, -1, 2, 3, 4},
     .extent = 13},
    {.name = "double sum", .type = MPI_DOUBLE, .per_block = 3, .real = 1, .op = MPI_SUM},
    {.name = "double and int minloc",
     .type = MPI_DOUBLE_INT,
     .per_block = 2,
     .real = 1,
     .op = MPI_MINLOC},
    {.name = "two int maxloc", .type = MPI_2INT, .per_block = 3, .op = MPI_MAXLOC},
    {.name = "byte exclusive or", .type = MPI_BYTE, .per_block = 24, .op = MPI_BXOR},
    {.name = "int max", .type = MPI_INT, .per_block = 6, .op = MPI_MAX},
    {.name = "summed vector with gaps",
     .per_block = 1,
     .layout = &vector_layout,
     .function = add_up,
     .commutes = 1,
     .places = {0, 1, 5, 6, 10, 11},
     .extent = 12},
    {.name = "composed contiguous",
     .per_block = 1,
     .layout = &contiguous_layout,
     .function = compose,
     .places = {0, 1, 2, 3, 4, 5},
     .extent = 6},
};

enum { OPERANDS = sizeof operands / sizeof operands[0] };

#endif
