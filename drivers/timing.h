/* The drivers' tools for timing. */
#ifndef TIMING_H
#define TIMING_H

#include <stdlib.h>

#include <mpi.h>

/*
 * Dissemination barrier of our own over point-to-point messages (Hensgen, Finkel and Manber
 * 1988), so that times do not depend on the barrier of the library under test.
 */
static inline int timing_barrier(MPI_Comm comm) {
    int rank, size, error = PMPI_Comm_rank(comm, &rank);
    if (error == MPI_SUCCESS)
        error = PMPI_Comm_size(comm, &size);
    for (int distance = 1; error == MPI_SUCCESS && distance < size; distance *= 2)
        error = PMPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % size, 0, NULL, 0, MPI_BYTE,
                              (rank - distance + size) % size, 0, comm, MPI_STATUS_IGNORE);
    return error;
}

/*
 * The time of a call is that of its slowest rank, and the time of a repetition is the mean of its
 * calls: seconds[] holds `count` repetitions of `calls` calls each on every rank, and means[]
 * gets the `count` results on rank 0.
 */
static inline int timing_reduce(const double *seconds, int count, int calls, double *means,
                                MPI_Comm comm) {
    const size_t total = (size_t)count * (size_t)calls;
    double *slowest = calloc(total + 1, sizeof *slowest);
    if (slowest == NULL)
        return MPI_ERR_NO_MEM;
    const int error = PMPI_Reduce(seconds, slowest, count * calls, MPI_DOUBLE, MPI_MAX, 0, comm);
    for (size_t i = 0; i < total; ++i)
        means[i / (size_t)calls] += slowest[i] / calls;
    free(slowest);
    return error;
}

#endif
