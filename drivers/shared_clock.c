/*
 * A clock that the ranks of a communicator share.
 *
 * Ranks of one kernel read the same CLOCK_MONOTONIC, also in containers and in the lab; so one rank
 * of each kernel compares clocks for all. It asks rank 0 for the time (Cristian 1989). The error is
 * at most half of a round trip, so the shortest of several counts.
 */
#include "shared_clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "timing.h"

enum { ROUND_TRIPS = 10, TAG = 0 };

/* A sleep ends late by some microseconds: the rest is waited for in a loop, in seconds. Longer
 * loops would take the CPU from other ranks that share it and are to come at the same time. */
static const double SPIN = 1e-5;

/* How far ahead a meeting is, in seconds: at least and at most. */
static const double AHEAD_LEAST = 1e-4, AHEAD_MOST = 0.5;

/* By what part the distance of meetings shrinks if barriers have become faster. */
static const double SHRINK = 0.9;

static struct {
    int rank, size;
    int *leaders;   /* of each rank the first one that reads the same clock */
    double offset;  /* this rank's clock + offset is the clock of rank 0 */
    double error;   /* in seconds */
    double ahead;   /* how far ahead this rank wants meetings to be, in seconds */
    int asks, used; /* whether it compares clocks; whether there are several */
} shared;

static double monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double shared_clock_now(void) {
    return monotonic() + shared.offset;
}

double shared_clock_error(void) {
    return shared.error;
}

/* Fowler, Noll and Vo's hash, variant 1a. */
static uint64_t hash_of(uint64_t hash, const char *data, size_t length) {
    for (size_t i = 0; i < length; ++i)
        hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3U;
    return hash;
}

/* What names the clock of this process: the start of its kernel, and its time namespace. */
static uint64_t clock_name(void) {
    char text[256];
    uint64_t name = 0xcbf29ce484222325U;
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    if (file >= 0)
        close(file);
    if (length <= 0) { /* unknown: a clock of its own */
        const double now = monotonic();
        const int pid = getpid();
        gethostname(text, sizeof text);
        name = hash_of(name, text, strnlen(text, sizeof text));
        name = hash_of(name, (const char *)&now, sizeof now);
        return hash_of(name, (const char *)&pid, sizeof pid);
    }
    name = hash_of(name, text, (size_t)length);
    const ssize_t link = readlink("/proc/self/ns/time", text, sizeof text);
    return link > 0 ? hash_of(name, text, (size_t)link) : name;
}

/* Of each rank the first one with the same name. */
static void find_leaders(const uint64_t *names) {
    shared.used = 0;
    for (int i = 0; i < shared.size; ++i) {
        int first = 0;
        while (names[first] != names[i])
            ++first;
        shared.leaders[i] = first;
        shared.used |= first != 0;
    }
    shared.asks = shared.rank != 0 && shared.leaders[shared.rank] == shared.rank;
}

int shared_clock_open(MPI_Comm comm) {
    const uint64_t name = clock_name();
    prctl(PR_SET_TIMERSLACK, 1UL); /* sleeps end on time; nanoseconds */
    TIMING_TRY(PMPI_Comm_rank(comm, &shared.rank));
    TIMING_TRY(PMPI_Comm_size(comm, &shared.size));
    free(shared.leaders);
    shared.leaders = calloc((size_t)shared.size, sizeof *shared.leaders);
    uint64_t *names = calloc((size_t)shared.size, sizeof *names);
    int error = shared.leaders == NULL || names == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (error == MPI_SUCCESS)
        error = PMPI_Allgather(&name, 1, MPI_UINT64_T, names, 1, MPI_UINT64_T, comm);
    if (error == MPI_SUCCESS)
        find_leaders(names);
    free(names);
    shared.offset = shared.error = 0;
    shared.ahead = AHEAD_LEAST;
    return error;
}

/* Ask rank 0 for the time. */
static int ask(MPI_Comm comm, double *offset, double *least) {
    *least = HUGE_VAL;
    for (int i = 0; i < ROUND_TRIPS; ++i) {
        double there;
        const double before = monotonic();
        TIMING_TRY(PMPI_Send(NULL, 0, MPI_BYTE, 0, TAG, comm));
        TIMING_TRY(PMPI_Recv(&there, 1, MPI_DOUBLE, 0, TAG, comm, MPI_STATUS_IGNORE));
        const double after = monotonic();
        if (after - before < *least) {
            *least = after - before;
            *offset = there - (before + after) / 2;
        }
    }
    return MPI_SUCCESS;
}

static int tell(MPI_Comm comm, int rank) {
    for (int i = 0; i < ROUND_TRIPS; ++i) {
        TIMING_TRY(PMPI_Recv(NULL, 0, MPI_BYTE, rank, TAG, comm, MPI_STATUS_IGNORE));
        const double now = monotonic();
        TIMING_TRY(PMPI_Send(&now, 1, MPI_DOUBLE, rank, TAG, comm));
    }
    return MPI_SUCCESS;
}

int shared_clock_align(MPI_Comm comm) {
    if (!shared.used)
        return MPI_SUCCESS;
    struct {
        double offset, trip;
    } mine = {0, 0};
    if (shared.asks)
        TIMING_TRY(ask(comm, &mine.offset, &mine.trip));
    for (int i = 1; shared.rank == 0 && i < shared.size; ++i)
        if (shared.leaders[i] == i)
            TIMING_TRY(tell(comm, i));
    double *all = calloc(2 * (size_t)shared.size, sizeof *all);
    if (all == NULL)
        return MPI_ERR_NO_MEM;
    const int error = PMPI_Allgather(&mine, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, comm);
    shared.offset = all[2 * shared.leaders[shared.rank]];
    for (int i = 0; i < shared.size; ++i)
        shared.error = fmax(shared.error, all[2 * i + 1] / 2);
    free(all);
    return error;
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
