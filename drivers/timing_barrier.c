/* Mpptest with a barrier before each call, which is timed alone (Faraj 2006, Fig. 4.3 (b)). */
#include "timing.h"

static int repeat(const struct timed *timed, double *seconds) {
    for (long i = 0; i < timed->calls; ++i) {
        if (i > 0) /* one has just been */
            TIMING_TRY(timing_barrier(timed->comm));
        const double start = PMPI_Wtime();
        TIMING_TRY(timed->call(timed->what));
        seconds[i] = PMPI_Wtime() - start;
    }
    return MPI_SUCCESS;
}

const struct timing by_barrier = {.name = "barrier", .each_call = 1, .repeat = repeat};
