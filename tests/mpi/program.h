/* What the test programs share: a count of failures, and random calls compared with native. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "calls.h"

static int failures;

/* Note a failure of this rank, with the line. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ++failures;                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
        }                                                                                          \
    } while (0)

/* End the program; its status says whether any rank had a failure. */
static inline int finish(void) {
    int all = 1;
    PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline unsigned next_random(unsigned *state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/*
 * One call of a collective, by its number, through the library and the same one through PMPI; 1
 * if the results differ. Of `bytes` for, or from, each rank.
 */
static inline int differs(int kind, int bytes, int root, unsigned seed, MPI_Comm comm) {
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const size_t room = (size_t)(bytes + 1) * (size_t)size;
    char *input = malloc(room), *expected = malloc(room), *actual = malloc(room);
    unsigned state = seed + 977U * (unsigned)rank;
    for (size_t i = 0; i < room; ++i)
        input[i] = (char)next_random(&state);
    memcpy(expected, input, room);
    memcpy(actual, input, room);
    struct arguments arguments = {input,    bytes,    MPI_BYTE, expected, bytes,
                                  MPI_BYTE, MPI_BXOR, root,     comm};
    int failed = kinds[kind].call(&arguments, 1) != MPI_SUCCESS;
    arguments.recv = actual;
    failed |= kinds[kind].call(&arguments, 0) != MPI_SUCCESS;
    failed |= memcmp(expected, actual, room) != 0;
    free(input);
    free(expected);
    free(actual);
    return failed;
}

#endif
