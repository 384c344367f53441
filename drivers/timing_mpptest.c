/* Mpptest: calls one after the other, timed as one (Faraj 2006, Fig. 4.3 (a)). */
#include "timing.h"

static int repeat(const struct timed *timed, double *seconds) {
    const double start = PMPI_Wtime();
    for (long i = 0; i < timed->calls; ++i)
        TIMING_TRY(timed->call(timed->what));
    *seconds = (PMPI_Wtime() - start) / (double)timed->calls;
    return MPI_SUCCESS;
}

const struct timing by_mpptest = {.name = "mpptest", .each_call = 0, .repeat = repeat};
