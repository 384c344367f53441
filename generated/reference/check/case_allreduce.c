#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Allreduce(call->sendbuf, call->recvbuf, call->recv_count, call->recv_type, call->op,
                         call->comm);
}

const struct coll_case coll_case_allreduce = {
    .send = CASE_ONE,
    .recv = CASE_ONE,
    .in_place = CASE_EVERYWHERE,
    .reduces = 1,
    .entry = entry,
};
