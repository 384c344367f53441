#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Allgatherv(call->sendbuf, call->send_count, call->send_type, call->recvbuf,
                          call->recv_blocks.counts, call->recv_blocks.displacements,
                          call->recv_type, call->comm);
}

const struct coll_case coll_case_allgatherv = {
    .send = CASE_ONE,
    .recv = CASE_ALL,
    .in_place = CASE_EVERYWHERE,
    .uneven = 1,
    .of_whole = 1,
    .entry = entry,
};
