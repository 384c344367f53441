/*
 * A persistent alltoall with libcoll's plan and in the MPI library's own form, timed in turn: the
 * slowest rank's time of MPI_Start and MPI_Wait; medians, and the median of the ratios of pairs.
 *
 *   persistent BYTES REPETITIONS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { PLANNED, NATIVE, RATIO, ROWS };

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double timed(MPI_Request *request) {
    double took, slowest;
    PMPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    took = MPI_Wtime() - start;
    PMPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"planned, ms", "native, ms", "native / planned"};
    const int bytes = argc > 1 ? atoi(argv[1]) : 32768, pairs = argc > 2 ? atoi(argv[2]) : 9;
    MPI_Request requests[2];
    double *rows[ROWS];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *send = calloc((size_t)size, (size_t)bytes), *recv = calloc((size_t)size, (size_t)bytes);
    for (int i = 0; i < ROWS; ++i)
        rows[i] = calloc((size_t)pairs, sizeof *rows[i]);
    MPI_Alltoall_init(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[PLANNED]);
    PMPI_Alltoall_init(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[NATIVE]);
    for (int i = PLANNED; i <= NATIVE; ++i)
        timed(&requests[i]);
    for (int pair = 0; pair < pairs; ++pair) {
        const int first = pair % 2;
        rows[first][pair] = 1e3 * timed(&requests[first]);
        rows[!first][pair] = 1e3 * timed(&requests[!first]);
        rows[RATIO][pair] = rows[NATIVE][pair] / rows[PLANNED][pair];
    }
    for (int i = 0; i < ROWS; ++i) {
        qsort(rows[i], (size_t)pairs, sizeof *rows[i], compare);
        if (rank == 0)
            printf("%-17s median %8.2f, %8.2f to %8.2f\n", names[i], rows[i][pairs / 2], rows[i][0],
                   rows[i][pairs - 1]);
        free(rows[i]);
    }
    MPI_Request_free(&requests[PLANNED]);
    MPI_Request_free(&requests[NATIVE]);
    free(send);
    free(recv);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
