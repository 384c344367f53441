/* A clock that the ranks of a communicator share: CLOCK_MONOTONIC, aligned where it differs. */
#ifndef SHARED_CLOCK_H
#define SHARED_CLOCK_H

#include <mpi.h>

/*
 * Find out which ranks read the same clock. Collective; call it before a communicator's ranks use
 * the shared clock, and when they change. Returns an MPI error code.
 */
int shared_clock_open(MPI_Comm comm);

/*
 * Estimate by how much the clocks of other machines differ from that of rank 0. It does nothing if
 * all ranks read the same clock. Clocks drift, so call it before each repetition. Collective.
 */
int shared_clock_align(MPI_Comm comm);

/* The greatest error of an estimate since the clock was opened, in seconds; 0 for one clock. */
double shared_clock_error(void);

/* Seconds on the shared clock. */
double shared_clock_now(void);

/* Wait until a time of the shared clock without using the CPU, but for the last moments. */
void shared_clock_wait(double until);

/*
 * A barrier after which all ranks know the same time of the shared clock, which lies shortly ahead:
 * so far that the barrier will probably have ended on all ranks by then. Collective.
 */
int shared_clock_meet(MPI_Comm comm, double *start);

#endif
