/* The reductions of the conformance check: elements and operations with exact results. */
#ifndef OPERANDS_H
#define OPERANDS_H

#include "layouts.h"
#include "numbers.h"

enum { INTS_OF_BLOCK = BLOCK_BYTES / (int)sizeof(int), PRIME = 10007 };

/* The places of the six integers of a derived type's element, in steps of `extent` integers. */
struct shape {
    const struct layout *layout;
    int offsets[INTS_OF_BLOCK], extent;
};

static const struct shape contiguous_shape = {&contiguous_layout, {0, 1, 2, 3, 4, 5}, 6};
static const struct shape vector_shape = {&vector_layout, {0, 1, 5, 6, 10, 11}, 12};
static const struct shape interleaved_shape = {&interleaved_layout, {0, 7, 2, 9, 4, 11}, 6};
static const struct shape negative_shape = {&negative_layout, {-4, -3, -1, 2, 3, 4}, 13};

/*
 * Elements of a predefined type or, with shapes, of two derived ones with the same signature, for
 * the even and the odd ranks. The operation is MPI's or, with a function, one of ours.
 */
struct operand {
    const char *name;
    MPI_Datatype type;
    int per_block; /* elements of a block: about BLOCK_BYTES, or fewer */
    const struct number *number;
    enum values values;
    MPI_Op op;
    const struct shape *shapes[2];
    MPI_User_function *function;
    int commutes;
};

/* The shape for the functions below, since they cannot take apart the datatype that MPI passes. */
static const struct shape *current_shape;

static int *place_of(void *elements, int element, int number) {
    return (int *)elements + element * current_shape->extent + current_shape->offsets[number];
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

/* The telling ones, which go through all lengths; operations.h has the rest of MPI's. */
static const struct operand operands[] = {
    {.name = "int sum", .type = MPI_INT, .per_block = 6, .number = &int_number, .op = MPI_SUM},
    {.name = "composed negative lower bound",
     .per_block = 1,
     .number = &int_number,
     .shapes = {&negative_shape, &negative_shape},
     .function = compose},
    {.name = "double sum",
     .type = MPI_DOUBLE,
     .per_block = 1,
     .number = &double_number,
     .op = MPI_SUM},
    {.name = "double and int minloc",
     .type = MPI_DOUBLE_INT,
     .per_block = 2,
     .number = &double_int_number,
     .values = VALUES_TIED,
     .op = MPI_MINLOC},
    {.name = "byte exclusive or",
     .type = MPI_BYTE,
     .per_block = 1,
     .number = &byte_number,
     .op = MPI_BXOR},
    {.name = "summed, with and without gaps",
     .per_block = 1,
     .number = &int_number,
     .shapes = {&vector_shape, &contiguous_shape},
     .function = add_up,
     .commutes = 1},
    {.name = "composed contiguous",
     .per_block = 1,
     .number = &int_number,
     .shapes = {&contiguous_shape, &contiguous_shape},
     .function = compose},
    {.name = "composed interleaved",
     .per_block = 1,
     .number = &int_number,
     .shapes = {&interleaved_shape, &interleaved_shape},
     .function = compose},
    {.name = "composed, with and without gaps",
     .per_block = 1,
     .number = &int_number,
     .shapes = {&vector_shape, &contiguous_shape},
     .function = compose},
};

enum { OPERANDS = sizeof operands / sizeof operands[0] };

#endif
