#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Gather(call->sendbuf, call->send_count, call->send_type, call->recvbuf,
                      call->recv_count, call->recv_type, call->root, call->comm);
}

const struct coll_case coll_case_gather = {
    .send = CASE_ONE,
    .recv = CASE_ALL,
    .in_place = CASE_SEND_AT_ROOT,
    .rooted = 1,
    .entry = entry,
};
