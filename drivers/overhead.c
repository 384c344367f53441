/*
 * The cost of intercepting a call: times collectives of 0 bytes, or of BYTES, on MPI_COMM_WORLD
 * through the MPI_ and the PMPI_ names in turn. On one rank, where a call does next to nothing, it
 * shows how long the library takes to find that the call is native.
 *
 *   overhead [BYTES]
 *
 * Prints nanoseconds per call: medians over ROUNDS batches of CALLS calls on rank 0. The overhead
 * is the median of the differences between neighbouring batches.
 */
#include <stdio.h>
#include <stdlib.h>

#include "message.h"

enum { ROUNDS = 501, CALLS = 100, WARM_UP = 20 };

/* The mean nanoseconds of CALLS calls. */
static double batch(const struct collective *collective, const struct message *message, int side) {
    const double start = PMPI_Wtime();
    for (int i = 0; i < CALLS; ++i)
        make_call(collective, message, side);
    return (PMPI_Wtime() - start) * 1e9 / CALLS;
}

static int ascending(const void *a, const void *b) {
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, ascending);
    return values[ROUNDS / 2];
}

/* The two sides take turns, and also take turns at going first. */
static void measure(const struct collective *collective, int bytes, int rank, int size) {
    static double nanoseconds[SIDES][ROUNDS], overhead[ROUNDS];
    struct message message = make_message(collective, bytes, rank, size);
    for (int round = -WARM_UP; round < ROUNDS; ++round) {
        double spent[SIDES];
        for (int turn = 0; turn < SIDES; ++turn) {
            const int side = (round + WARM_UP + turn) % SIDES;
            spent[side] = batch(collective, &message, side);
        }
        if (round < 0)
            continue;
        overhead[round] = spent[TUNED] - spent[NATIVE];
        for (int side = 0; side < SIDES; ++side)
            nanoseconds[side][round] = spent[side];
    }
    free_message(&message);
    if (rank == 0)
        printf("%-20s %10.1f %10.1f %10.1f\n", collective->name, median(nanoseconds[NATIVE]),
               median(nanoseconds[TUNED]), median(overhead));
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("%-20s %10s %10s %10s\n", "ns", "direct", "called", "overhead");
    for (int which = 0; which < COLLECTIVES; ++which)
        measure(&collectives[which], argc > 1 ? atoi(argv[1]) : 0, rank, size);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
