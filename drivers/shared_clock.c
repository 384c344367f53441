/* A clock that the ranks of a communicator share; how it is compared is in clocks.c. */
#include "shared_clock.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "timing.h"

enum { EXCHANGES = 10, TAG = 0 };

/* A sleep ends late by some microseconds: the rest is waited for in a loop, in seconds. Longer
 * loops would take the CPU from other ranks that share it and are to come at the same time. */
static const double SPIN = 1e-5;

/* How far ahead a meeting is, in seconds: at least and at most. */
static const double AHEAD_LEAST = 1e-4, AHEAD_MOST = 0.5;

/* By what part the distance of meetings shrinks if barriers have become faster. */
static const double SHRINK = 0.9;

static struct {
    int rank, size;
    int *leaders;  /* [rank] -> the first rank that reads the same clock */
    int used;      /* whether there are several clocks */
    double offset; /* this rank's clock + offset is the clock of rank 0 */
    double error;  /* in seconds */
    double ahead;  /* how far ahead this rank wants meetings to be, in seconds */
} shared;

static double monotonic(void) {
    return 1e-9 * (double)clocks_of_system();
}

double shared_clock_now(void) {
    return monotonic() + shared.offset;
}

double shared_clock_error(void) {
    return shared.error;
}

int shared_clock_open(MPI_Comm comm) {
    char host[CLOCKS_NAME] = "", name[CLOCKS_NAME];
    gethostname(host, sizeof host - 1);
    clocks_identify(name, host);
    prctl(PR_SET_TIMERSLACK, 1UL); /* sleeps end on time; nanoseconds */
    TIMING_TRY(PMPI_Comm_rank(comm, &shared.rank));
    TIMING_TRY(PMPI_Comm_size(comm, &shared.size));
    free(shared.leaders);
    TIMING_TRY(clocks_find_leaders(comm, name, &shared.leaders));
    shared.used = 0;
    for (int rank = 0; rank < shared.size; ++rank)
        shared.used |= shared.leaders[rank] != 0;
    shared.offset = shared.error = 0;
    shared.ahead = AHEAD_LEAST;
    return MPI_SUCCESS;
}

int shared_clock_align(MPI_Comm comm) {
    if (!shared.used)
        return MPI_SUCCESS;
    struct clocks_sample own;
    int64_t greatest;
    TIMING_TRY(clocks_sample(comm, shared.leaders, EXCHANGES, clocks_of_system, &own));
    TIMING_TRY(PMPI_Allreduce(&own.error, &greatest, 1, MPI_INT64_T, MPI_MAX, comm));
    shared.offset = -1e-9 * (double)own.offset;
    shared.error = fmax(shared.error, 1e-9 * (double)greatest);
    return MPI_SUCCESS;
}

void shared_clock_wait(double until) {
    const double wake = until - shared.offset - SPIN;
    if (wake > monotonic()) {
        struct timespec when = {.tv_sec = (time_t)wake};
        when.tv_nsec = (long)(1e9 * (wake - (double)when.tv_sec));
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
            continue; /* a signal */
    }
    while (shared_clock_now() < until)
        continue;
}

/* The dissemination of timing_barrier; each message carries the greatest numbers seen so far. */
int shared_clock_meet(MPI_Comm comm, double *start) {
    double greatest[2] = {shared_clock_now(), shared.ahead};
    for (int distance = 1; distance < shared.size; distance *= 2) {
        double other[2];
        TIMING_TRY(PMPI_Sendrecv(greatest, 2, MPI_DOUBLE, (shared.rank + distance) % shared.size,
                                 TAG, other, 2, MPI_DOUBLE,
                                 (shared.rank - distance + shared.size) % shared.size, TAG, comm,
                                 MPI_STATUS_IGNORE));
        for (int i = 0; i < 2; ++i)
            greatest[i] = fmax(greatest[i], other[i]);
    }
    *start = greatest[0] + greatest[1];
    const double took = shared_clock_now() - greatest[0];
    shared.ahead = fmin(fmax(fmax(2 * took, SHRINK * shared.ahead), AHEAD_LEAST), AHEAD_MOST);
    return MPI_SUCCESS;
}
