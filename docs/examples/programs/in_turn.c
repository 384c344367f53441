/*
 * Allreduces of 4 bytes, each after a barrier, in pairs: what the first and the second one of a
 * pair take. With LIBCOLL_EVENTS_EACH=2, a library with TRACE=1 keeps the events of the second ones
 * only.
 *
 *   in_turn [PAIRS [UNTIMED]]        unless told 1000 pairs, after 20 untimed ones
 *
 * Prints two numbers for each pair: the time of the slowest rank, in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { OF_PAIR = 2, UNTIMED = 20 };

int main(int argc, char **argv) {
    const int pairs = argc > 1 ? atoi(argv[1]) : 1000, untimed = argc > 2 ? atoi(argv[2]) : UNTIMED;
    const int calls = OF_PAIR * (pairs + untimed);
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
    for (int i = OF_PAIR * untimed; rank == 0 && i < calls; i += OF_PAIR)
        printf("%.3f %.3f\n", slowest[i] * 1e6, slowest[i + 1] * 1e6);
    free(seconds);
    free(slowest);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
