/*
 * Imbalanced arrival (Faraj 2006, Fig. 4.20): ranks of a real program seldom call together.
 *
 * After a barrier, each rank computes for a share of the time that --computation gives, and calls.
 * The share is random for each rank and each call, and the same for each routine, so that all
 * routines meet the same patterns. The call alone is timed: a rank's time is what it spends in it,
 * waiting for late ranks included. In the source, the mean over the ranks counts: --metric mean.
 */
#include "timing.h"

/* From 0 up to 1; a multiplicative hash of rank and call (Knuth 1998, §6.4). */
static double share(unsigned rank, unsigned call) {
    unsigned mixed = (rank + 1) * 2654435769U ^ (call + 1) * 2246822519U;
    mixed = (mixed ^ mixed >> 15) * 2654435769U;
    return (mixed >> 8) / (double)(1U << 24);
}

static int repeat(const struct timed *timed, double *seconds) {
    int rank;
    TIMING_TRY(PMPI_Comm_rank(timed->comm, &rank));
    for (long i = 0; i < timed->calls; ++i) {
        TIMING_TRY(timing_barrier(timed->comm));
        timing_compute((long)(share((unsigned)rank, (unsigned)i) * (double)timed->bound));
        const double start = PMPI_Wtime();
        TIMING_TRY(timed->call(timed->what));
        seconds[i] = PMPI_Wtime() - start;
    }
    return MPI_SUCCESS;
}

const struct timing by_arrival = {.name = "arrival", .each_call = 1, .repeat = repeat};
