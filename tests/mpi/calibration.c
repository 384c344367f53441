/*
 * The calibration on a machine that is not real: it does RATE times 1,000 operations in a
 * millisecond, and other work interrupts nearly every try. Prints the rate that was found, the
 * bound of 25 ms, and how often the machine computed before and after the second question.
 *
 *   calibration RATE SEED
 */
#include "calibration.h"

#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

static double now, speed;
static unsigned state;
static long computations;

double PMPI_Wtime(void) {
    return now;
}

void timing_compute(long bound) {
    ++computations;
    now += (double)bound / (1e3 * speed);
    state = state * 1664525U + 1013904223U;
    if (state >> 24 > 40) /* of 256 */
        now += 1e-6 * (double)(state >> 12 & 0xfff);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    speed = atof(argv[1]);
    state = (unsigned)atoi(argv[2]);
    printf("%ld %ld ", calibration_rate(), calibration_bound(25));
    const long before = computations;
    printf("%ld ", before);
    (void)calibration_rate();
    printf("%ld\n", computations);
    return EXIT_SUCCESS;
}
