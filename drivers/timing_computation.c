/* Mpptest with computation before each call, which is timed alone (Faraj 2006, Fig. 4.3 (c)). */
#include "timing.h"

static int repeat(const struct timed *timed, double *seconds) {
    for (long i = 0; i < timed->calls; ++i) {
        timing_compute(timed->bound);
        const double start = PMPI_Wtime();
        TIMING_TRY(timed->call(timed->what));
        seconds[i] = PMPI_Wtime() - start;
    }
    return MPI_SUCCESS;
}

const struct timing by_computation = {.name = "computation", .each_call = 1, .repeat = repeat};
