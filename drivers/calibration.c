/*
 * How long timing_compute takes on this rank.
 *
 * A machine that does other work as well can only make a try longer. So the least time of several
 * tries counts, each so short that it often fits between two interruptions. The rate has two
 * digits: beyond them it would be another one every time, and equal hosts should compute as much.
 */
#include "calibration.h"

#include <math.h>

#include "timing.h"

enum { TRIES = 30 };

/* Seconds of a try: long against the clock's resolution, short against a time slice. */
static const double TRY_SECONDS = 2e-4;

static double least_time(long bound) {
    double least = HUGE_VAL;
    for (int i = 0; i < TRIES; ++i) {
        const double start = PMPI_Wtime();
        timing_compute(bound);
        least = fmin(least, PMPI_Wtime() - start);
    }
    return least;
}

static long two_digits(double number) {
    long unit = 1;
    while (number / (double)unit >= 99.5)
        unit *= 10;
    return unit * lround(number / (double)unit);
}

static double measured_rate(void) {
    long bound = 1;
    double least = least_time(bound);
    while (least < TRY_SECONDS)
        least = least_time(bound *= 2);
    return (double)bound / least / 1e3;
}

long calibration_rate(void) {
    static long rate;
    if (rate == 0)
        rate = two_digits(fmax(measured_rate(), 1));
    return rate;
}

long calibration_bound(double milliseconds) {
    return milliseconds > 0 ? lround(milliseconds * (double)calibration_rate()) : 0;
}
