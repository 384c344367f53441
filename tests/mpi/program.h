/* What the test programs share: a count of failures, and random calls compared with native. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

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

enum { KINDS = 3 };

/* One call through the library and the same one through PMPI; 1 if the results differ. */
static inline int differs(int kind, int bytes, int root, unsigned seed, MPI_Comm comm) {
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const size_t room = (size_t)bytes * (size_t)size + 1;
    char *input = malloc(room), *expected = calloc(room, 1), *actual = calloc(room, 1);
    unsigned state = seed + 977U * (unsigned)rank;
    for (size_t i = 0; i < room; ++i)
        input[i] = (char)next_random(&state);
    if (kind == 0) {
        PMPI_Alltoall(input, bytes, MPI_BYTE, expected, bytes, MPI_BYTE, comm);
        MPI_Alltoall(input, bytes, MPI_BYTE, actual, bytes, MPI_BYTE, comm);
    } else if (kind == 1) {
        PMPI_Allgather(input, bytes, MPI_BYTE, expected, bytes, MPI_BYTE, comm);
        MPI_Allgather(input, bytes, MPI_BYTE, actual, bytes, MPI_BYTE, comm);
    } else {
        memcpy(expected, input, room);
        memcpy(actual, input, room);
        PMPI_Bcast(expected, bytes, MPI_BYTE, root, comm);
        MPI_Bcast(actual, bytes, MPI_BYTE, root, comm);
    }
    const int different = memcmp(expected, actual, room) != 0;
    free(input);
    free(expected);
    free(actual);
    return different;
}

#endif
