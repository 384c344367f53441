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

enum { PEERS_MOST = 64 };

/* Blocks for, or from, so many ranks: `count` elements each, and one more left free after them. */
struct blocks {
    int counts[PEERS_MOST], displacements[PEERS_MOST];
};

static inline struct blocks blocks_of(int count) {
    struct blocks blocks;
    for (int i = 0; i < PEERS_MOST; ++i) {
        blocks.counts[i] = count;
        blocks.displacements[i] = i * (count + 1);
    }
    return blocks;
}

/* Blocks that may differ in length are as long as the counts of the arguments say. */
static inline int call(const struct collective *collective, const struct arguments *arguments,
                       int native) {
    const struct blocks to = blocks_of(arguments->send_count);
    const struct blocks from = blocks_of(arguments->recv_count);
    struct arguments all = *arguments;
    all.send_counts = to.counts;
    all.send_displacements = to.displacements;
    all.recv_counts = from.counts;
    all.recv_displacements = from.displacements;
    return collective->call(&all, native);
}

static inline unsigned next_random(unsigned *state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/*
 * One call of a collective, by its number, through the library and the same one through PMPI; 1
 * if the results differ. Of `bytes` for, or from, each rank.
 */
static inline int differs(int collective, int bytes, int root, unsigned seed, MPI_Comm comm) {
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
    struct arguments arguments = {.send = input,
                                  .send_count = bytes,
                                  .send_type = MPI_BYTE,
                                  .recv = expected,
                                  .recv_count = bytes,
                                  .recv_type = MPI_BYTE,
                                  .op = MPI_BXOR,
                                  .root = root,
                                  .comm = comm};
    int failed = call(&collectives[collective], &arguments, 1) != MPI_SUCCESS;
    arguments.recv = actual;
    failed |= call(&collectives[collective], &arguments, 0) != MPI_SUCCESS;
    failed |= memcmp(expected, actual, room) != 0;
    free(input);
    free(expected);
    free(actual);
    return failed;
}

#endif
