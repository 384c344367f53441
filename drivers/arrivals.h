/* How late ranks come to calls: drawn by a seed, or as recorded. docs/timing.md says more. */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include <mpi.h>

#include "timing.h"

/*
 * The plan of a request. Imbalance (Faraj 2006, Fig. 4.20): in an experiment each rank is late by
 * 0 to most - 1 units, the same in all of its calls. Replay: as in the recorded calls, in turn.
 */
struct arrivals {
    long long unit;          /* in nanoseconds */
    long long most;          /* 0: replay */
    unsigned long long seed; /* of the draws */
    long long first; /* the number of the first experiment; of a replay, of the repetition */
};

/* The most units, and the longest unit in nanoseconds: an hour. */
enum { ARRIVALS_MOST = 1 << 30 };
static const long long ARRIVALS_UNIT_MOST = 3600LL * 1000 * 1000 * 1000;

/* Read `unit=NANOSECONDS:most=N:seed=N:first=N`; returns 0 if it is something else. */
int arrivals_parse(const char *text, struct arrivals *out);

/*
 * Keep the delays of a recorded call, from a rank on: `CALL RANK DELAY...`, in microseconds. Call 0
 * from rank 0 on begins a new recording. Returns 0 if it is something else.
 */
int arrivals_keep(const char *words);

/* How many ranks the recording has; 0 if there is none. */
int arrivals_ranks(void);

/* The units by which a rank is late in an experiment: from 0 to most - 1, each equally likely. */
long long arrivals_draw(const struct arrivals *plan, long long experiment, int rank);

/* The seconds by which a rank is late for each of the calls of a repetition. */
void arrivals_delays(const struct arrivals *plan, long repetition, int rank, long calls,
                     double *delays);

/*
 * Make the calls of a repetition, each at its own time after a meeting of all ranks. Gives the
 * seconds that each took, and when this rank came to it, in seconds after the meeting.
 */
int arrivals_repeat(const struct timed *timed, double *seconds);

#endif
