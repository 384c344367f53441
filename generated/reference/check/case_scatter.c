#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Scatter(call->sendbuf, call->send_count, call->send_type, call->recvbuf,
                       call->recv_count, call->recv_type, call->root, call->comm);
}

const struct coll_case coll_case_scatter = {
    .send = CASE_ALL,
    .recv = CASE_ONE,
    .in_place = CASE_RECV_AT_ROOT,
    .rooted = 1,
    .entry = entry,
};
