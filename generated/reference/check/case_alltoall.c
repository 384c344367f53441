#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Alltoall(call->sendbuf, call->send_count, call->send_type, call->recvbuf,
                        call->recv_count, call->recv_type, call->comm);
}

const struct coll_case coll_case_alltoall = {
    .send = CASE_ALL,
    .recv = CASE_ALL,
    .in_place = CASE_EVERYWHERE,
    .entry = entry,
};
