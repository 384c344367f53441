#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Bcast(call->recvbuf, call->recv_count, call->recv_type, call->root, call->comm);
}

const struct coll_case coll_case_bcast = {
    .send = CASE_NOTHING,
    .recv = CASE_ONE,
    .in_place = CASE_NEVER,
    .rooted = 1,
    .entry = entry,
};
