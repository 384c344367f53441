#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Reduce(call->sendbuf, call->recvbuf, call->recv_count, call->recv_type, call->op,
                      call->root, call->comm);
}

const struct coll_case coll_case_reduce = {
    .send = CASE_ONE,
    .recv = CASE_ONE,
    .in_place = CASE_SEND_AT_ROOT,
    .rooted = 1,
    .reduces = 1,
    .entry = entry,
};
