/*
 * Allreduces of 4 bytes in pairs, for LIBCOLL_EVENTS_EACH=3: a library with TRACE=1 keeps the
 * events of every third call only. A pair is such a call and one beside it, which comes before it
 * and after it in turn:
 *
 *   call      1   2   3   4   5   6   7   8   9  10  11  12  13
 *   kept              x           x           x           x
 *   pair          0   0           1   1   2   2           3   3
 *
 * So the third calls have odd and even numbers, and are first and second in a pair, equally often;
 * and so are the others. Calls between pairs are alike, so that each call follows one.
 *
 *   in_turn [PAIRS [UNTIMED]]        unless told 1000 pairs, after 20 untimed ones
 *
 * Prints three numbers for each pair: the place of the third call, 1 or 2, the time of the call
 * beside it, and its own. A time is that of the slowest rank after a barrier, in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { EACH = 3, UNTIMED = 20 };

/* The call beside the third one of a pair, counted from 0; the third one is EACH * pair + 2. */
static int beside(int pair) {
    return EACH * pair + (pair % 2 == 0 ? 1 : 3);
}

int main(int argc, char **argv) {
    const int pairs = argc > 1 ? atoi(argv[1]) : 1000, untimed = argc > 2 ? atoi(argv[2]) : UNTIMED;
    const int calls = EACH * (pairs + untimed) + 1;
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *seconds = calloc((size_t)calls, sizeof *seconds);
    double *slowest = calloc((size_t)calls, sizeof *slowest);
    if (seconds == NULL || slowest == NULL || pairs < 1 || untimed < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < calls; ++i) {
        int sum = 0;
        PMPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        seconds[i] = MPI_Wtime() - begin;
        wrong += sum != size * (size - 1) / 2;
    }
    PMPI_Reduce(seconds, slowest, calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int pair = untimed; rank == 0 && pair < untimed + pairs; ++pair) {
        const int third = EACH * pair + 2, other = beside(pair);
        printf("%d %.3f %.3f\n", third < other ? 1 : 2, slowest[other] * 1e6, slowest[third] * 1e6);
    }
    free(seconds);
    free(slowest);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
