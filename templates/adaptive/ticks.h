/* A clock that is read in a few nanoseconds, twice in each call that is measured. */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* ticks.c: whether the processor's counter runs at one rate; set before the first call. */
extern int coll_counter_is_steady;

static inline uint64_t coll_ticks(void) {
#if defined(__x86_64__)
    if (coll_counter_is_steady)
        return __rdtsc();
#endif
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void coll_start_ticks(void);
double coll_seconds_per_tick(void);

#endif
