/* The reduction with scattered results of any length, as routines see it. */
#include "scattered_view.h"

static int measure(struct coll_call *call) {
    int rank, size;
    COLL_TRY(coll_measure_reduction(call));
    COLL_TRY(coll_member(call->comm, &rank, &size));
    return coll_total_bytes(&call->recv_blocks, size, call->recv_type, &call->bytes);
}

static double copies(const struct coll_call *call, int size, int dense) {
    (void)dense;
    return coll_scattered_view_copies((double)call->bytes, size);
}

const struct coll_view coll_view_reduce_scatter = {
    .measure = measure,
    .prepare = coll_scattered_view_prepare,
    .finish = coll_scattered_view_finish,
    .copies = copies,
};
