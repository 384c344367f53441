/* What a timing mechanism of the measuring session is, and what it may use: docs/timing.md. */
#ifndef TIMING_H
#define TIMING_H

#include <stdlib.h>

#include <mpi.h>

/* What a timing mechanism times: a repetition of some calls. */
struct timed {
    int (*call)(const void *what); /* makes one call; returns an MPI error code */
    const void *what;              /* its argument */
    long calls;                    /* ITER of the figure */
    double computation;            /* in seconds, as asked for */
    long bound;                    /* BOUND of the figure: on this rank it takes as long */
    MPI_Comm comm;
    const double *delays; /* if ranks come late: by how many seconds, for each call; else NULL */
    double *arrivals;     /* and when they came, which `repeat` gives; else NULL */
};

/* A timing mechanism. All ranks call `repeat` together, right after a barrier. */
struct timing {
    const char *name;
    /* Whether it has a time for each call; else one for all, that of a call on average. */
    int each_call;
    /* Gives the seconds on this rank; returns an MPI error code. */
    int (*repeat)(const struct timed *timed, double *seconds);
    int late; /* whether ranks come late by the delays of arrivals.h */
};

/* Return an MPI error code to the caller at once. */
#define TIMING_TRY(expression)                                                                     \
    do {                                                                                           \
        const int timing_error_ = (expression);                                                    \
        if (timing_error_ != MPI_SUCCESS)                                                          \
            return timing_error_;                                                                  \
    } while (0)

/* Computation that lasts in proportion to `bound`: so many times 1,000 operations. */
void timing_compute(long bound);

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

#endif
