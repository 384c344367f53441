/* The reduction with results of one length, scattered, as routines see it. */
#include <limits.h>

#include "scattered_view.h"

/* The results of all ranks together must not be more than an int can count, either. */
static int measure(struct coll_call *call) {
    int rank, size;
    COLL_TRY(coll_measure_reduction(call));
    COLL_TRY(coll_member(call->comm, &rank, &size));
    if (call->bytes * size > INT_MAX)
        call->bytes = (MPI_Aint)INT_MAX + 1;
    return MPI_SUCCESS;
}

static double copies(const struct coll_call *call, int size, int dense) {
    (void)dense;
    return coll_scattered_view_copies((double)call->bytes * size, size);
}

const struct coll_view coll_view_reduce_scatter_block = {
    .measure = measure,
    .prepare = coll_scattered_view_prepare,
    .finish = coll_scattered_view_finish,
    .copies = copies,
};
