/*
 * Clocks of hosts, compared over messages: for the recorder, for libraries with TRACE=1, and for
 * the measuring session.
 */
#ifndef CLOCKS_H
#define CLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

/* Letters of what tells clocks apart, and of a host's name, with the 0 at their end. */
enum { CLOCKS_NAME = 64 };

/* What the clock of rank 0 showed less than this process's clock, with the greatest error. */
struct clocks_sample {
    int64_t at, offset, error; /* nanoseconds; at: of this process's clock */
};

/* CLOCK_MONOTONIC, in nanoseconds. */
int64_t clocks_of_system(void);

/*
 * What processes have in common whose clocks are one: the kernel's start, and a namespace of times.
 * Where nothing is known of it, a host has one clock.
 */
void clocks_identify(char name[CLOCKS_NAME], const char *host);

/*
 * Collective: find the lowest rank with each rank's clock, [rank] -> rank, which the caller frees.
 * Each name must be filled up with zeros. Returns an MPI error code.
 */
int clocks_find_leaders(MPI_Comm comm, const char name[CLOCKS_NAME], int **leaders);

/*
 * Collective: compare all clocks with that of rank 0, as `now` reads them, by so many exchanges of
 * messages each. A rank whose clock is that of rank 0 gets zeros. Returns an MPI error code.
 */
int clocks_sample(MPI_Comm comm, const int *leaders, int exchanges, int64_t now(void),
                  struct clocks_sample *own);

/*
 * Both, by as many exchanges as a recording needs. An error ends the job. Returns 1 with this
 * process's sample, or 0 if its clock is that of rank 0.
 */
int clocks_compare(MPI_Comm comm, const char name[CLOCKS_NAME], int64_t now(void),
                   struct clocks_sample *own);

#endif
