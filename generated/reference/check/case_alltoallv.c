#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Alltoallv(call->sendbuf, call->send_blocks.counts, call->send_blocks.displacements,
                         call->send_type, call->recvbuf, call->recv_blocks.counts,
                         call->recv_blocks.displacements, call->recv_type, call->comm);
}

const struct coll_case coll_case_alltoallv = {
    .send = CASE_ALL,
    .recv = CASE_ALL,
    .in_place = CASE_EVERYWHERE,
    .uneven = 1,
    .entry = entry,
};
