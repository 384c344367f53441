/* The clock of this process, and how it compares with that of rank 0: see clocks.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

/* For tests: a clock that is set wrong and runs wrong. */
static int64_t false_offset;
static double false_drift;

int64_t recorder_now(void) {
    const int64_t now = clocks_of_system();
    if (__builtin_expect(false_offset != 0, 0))
        return now + false_offset + (int64_t)((double)now * false_drift);
    return now;
}

/* STAGEGEN_RECORD_CLOCK=SECONDS,PPM: rank r's clock is ahead by r times SECONDS and runs fast. */
void recorder_set_clock(int rank) {
    double seconds = 0, ppm = 0;
    const char *text = getenv("STAGEGEN_RECORD_CLOCK");
    if (text == NULL || sscanf(text, "%lf,%lf", &seconds, &ppm) < 1 || rank == 0)
        return;
    char *name = recorder_store->clock;
    false_drift = ppm * 1e-6 * rank;
    false_offset = (int64_t)(seconds * 1e9 * rank);
    snprintf(name + strnlen(name, RECORDER_HOST / 2), RECORDER_HOST / 2, "/%d", rank);
}

/* Collective: every rank keeps the sample of its clock; that of rank 0 has none. */
void recorder_compare_clocks(MPI_Comm comm) {
    struct clocks_sample own, *kept;
    uint64_t index;
    if (!clocks_compare(comm, recorder_store->clock, recorder_now, &own))
        return;
    kept = recorder_take(RECORDER_SAMPLES, 1, &index);
    if (kept != NULL)
        *kept = own;
}
