/* What the drivers time with. */
#ifndef TIMING_H
#define TIMING_H

#include <mpi.h>

/*
 * Dissemination barrier of our own over point-to-point messages (Hensgen, Finkel and Manber
 * 1988), so that what is timed does not depend on the barrier of the library under test.
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

#endif
