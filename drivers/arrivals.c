/* How late ranks come to calls. */
#include "arrivals.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shared_clock.h"

/* The recorded delays in seconds, by call and rank. */
static struct {
    double *delays;
    long calls;
    int ranks;
} recording;

/* The mixing function of SplitMix64 (Steele, Lea and Flood 2014) after its step. */
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* The upper half of the product of 32 random bits and `most`: off from uniform by 1 in 2^32. */
long long arrivals_draw(const struct arrivals *plan, long long experiment, int rank) {
    const uint64_t random = mix(mix(mix(plan->seed) ^ (uint64_t)experiment) ^ (uint64_t)rank);
    return (long long)(((random >> 32) * (uint64_t)plan->most) >> 32);
}

static double recorded(long long call, int rank) {
    return recording.delays[(call % recording.calls) * recording.ranks + rank];
}

void arrivals_delays(const struct arrivals *plan, long repetition, int rank, long calls,
                     double *delays) {
    const long long number = plan->first + repetition;
    for (long i = 0; i < calls; ++i)
        delays[i] = plan->most > 0 ? 1e-9 * (double)(plan->unit * arrivals_draw(plan, number, rank))
                                   : recorded(number * calls + i, rank);
}

int arrivals_parse(const char *text, struct arrivals *out) {
    int end = 0;
    return sscanf(text, "unit=%lld:most=%lld:seed=%llu:first=%lld%n", &out->unit, &out->most,
                  &out->seed, &out->first, &end) == 4 &&
           text[end] == '\0' && out->unit >= 0 && out->unit <= ARRIVALS_UNIT_MOST &&
           out->most >= 0 && out->most <= ARRIVALS_MOST && out->first >= 0;
}

int arrivals_ranks(void) {
    return recording.ranks;
}

/* Count numbers; returns -1 if there is anything else, or a number below 0. */
static int count_delays(const char *words) {
    int count = 0;
    for (char *end; words[strspn(words, " \n")] != '\0'; words = end, ++count) {
        const double delay = strtod(words, &end);
        if (end == words || !(delay >= 0 && isfinite(delay)))
            return -1;
    }
    return count;
}

/* Make room for `calls` calls of `ranks` ranks. What is new is 0. */
static int resize(long calls, int ranks) {
    double *delays = calloc((size_t)calls * (size_t)ranks, sizeof *delays);
    if (delays == NULL)
        return 0;
    for (long call = 0; call < calls && call < recording.calls; ++call)
        memcpy(&delays[call * ranks], &recording.delays[call * recording.ranks],
               (size_t)recording.ranks * sizeof *delays);
    free(recording.delays);
    recording.delays = delays;
    recording.calls = calls;
    recording.ranks = ranks;
    return 1;
}

/* Whether delays of a call from a rank on go on with the recording: no call or rank is left out. */
static int goes_on(long call, int rank, int count) {
    if (call == 0)
        return rank == recording.ranks && recording.calls <= 1;
    return call <= recording.calls && rank + count <= recording.ranks;
}

int arrivals_keep(const char *words) {
    long call;
    int rank, start = 0;
    if (sscanf(words, "%ld %d%n", &call, &rank, &start) != 2 || call < 0 || rank < 0)
        return 0;
    words += start;
    const int count = count_delays(words);
    if (call == 0 && rank == 0)
        recording.calls = recording.ranks = 0;
    if (count < 1 || !goes_on(call, rank, count))
        return 0;
    const int ranks = call == 0 ? rank + count : recording.ranks;
    if ((call == 0 || call == recording.calls) && !resize(call + 1, ranks))
        return 0;
    for (int i = 0; i < count; ++i) {
        char *end;
        recording.delays[call * recording.ranks + rank + i] = 1e-6 * strtod(words, &end);
        words = end;
    }
    return 1;
}

int arrivals_repeat(const struct timed *timed, double *seconds) {
    for (long i = 0; i < timed->calls; ++i) {
        double start;
        TIMING_TRY(shared_clock_meet(timed->comm, &start));
        shared_clock_wait(start + timed->delays[i]);
        const double arrival = shared_clock_now();
        TIMING_TRY(timed->call(timed->what));
        seconds[i] = shared_clock_now() - arrival;
        timed->arrivals[i] = arrival - start;
    }
    return MPI_SUCCESS;
}
