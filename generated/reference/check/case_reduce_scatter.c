#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Reduce_scatter(call->sendbuf, call->recvbuf, call->recv_blocks.counts,
                              call->recv_type, call->op, call->comm);
}

const struct coll_case coll_case_reduce_scatter = {
    .send = CASE_ALL,
    .recv = CASE_ONE,
    .in_place = CASE_EVERYWHERE,
    .reduces = 1,
    .uneven = 1,
    .of_whole = 1,
    .entry = entry,
};
