/*
 * Sums of all ranks, one after the other, on two communicators in turn: the benchmark Gsum of
 * Bongo, Anshus and Bjørndalen, Fig. 7. The two trees of a sum do not wait for each other.
 *
 *   gsum [CALLS [BYTES [UNTIMED]]]        unless told 1000 calls of 4 bytes, after 20 untimed ones
 *
 * Each rank gives its number and the number of the call; the result is checked.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { TREES = 2, UNTIMED = 20 };

/* Sum `calls` times from call `first` on; return how many sums were wrong. */
static int sum(MPI_Comm trees[TREES], int first, int calls, int *mine, int *all, int count) {
    int rank, size, wrong = 0;
    MPI_Comm_rank(trees[0], &rank);
    MPI_Comm_size(trees[0], &size);
    for (int i = first; i < first + calls; ++i) {
        for (int k = 0; k < count; ++k)
            mine[k] = rank + i % 1000;
        MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, trees[i % TREES]);
        wrong += all[count - 1] != size * (size - 1) / 2 + i % 1000 * size;
    }
    return wrong;
}

int main(int argc, char **argv) {
    const int calls = argc > 1 ? atoi(argv[1]) : 1000, bytes = argc > 2 ? atoi(argv[2]) : 4;
    const int untimed = argc > 3 ? atoi(argv[3]) : UNTIMED;
    const int count = bytes < (int)sizeof(int) ? 1 : bytes / (int)sizeof(int);
    int rank;
    MPI_Comm trees[TREES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TREES; ++i)
        MPI_Comm_dup(MPI_COMM_WORLD, &trees[i]);
    int *mine = calloc((size_t)count, sizeof *mine), *all = calloc((size_t)count, sizeof *all);
    if (mine == NULL || all == NULL || calls < 1 || untimed < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int wrong = sum(trees, 0, untimed, mine, all, count);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    wrong += sum(trees, untimed, calls, mine, all, count);
    const double seconds = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d sums of %d bytes in %.6f s\n", wrong ? "wrong" : "right", calls,
               count * (int)sizeof(int), seconds);
    for (int i = 0; i < TREES; ++i)
        MPI_Comm_free(&trees[i]);
    free(mine);
    free(all);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
