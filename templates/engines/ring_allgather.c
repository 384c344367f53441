/* The ring algorithm of allgather and allgatherv, in the order of the ranks. */
#include "ring_allgather.h"

/* Send the block of rank `out` to the next rank; receive that of rank `in` from the one before. */
static int pass(const struct coll_call *call, const struct coll_comm *cc, int out, int in) {
    const int p = cc->size;
    const MPI_Count sent = coll_recv_count(call, out), received = coll_recv_count(call, in);
    const int next = coll_peer((cc->rank + 1) % p, sent, call->recv_type);
    const int previous = coll_peer((cc->rank - 1 + p) % p, received, call->recv_type);
    return COLL_SENDRECV(coll_recv_block(call, out), sent, call->recv_type, next, COLL_TAG_DATA,
                         coll_recv_block(call, in), received, call->recv_type, previous,
                         COLL_TAG_DATA, cc->comm, MPI_STATUS_IGNORE);
}

int coll_ring_allgather(const struct coll_call *call, const struct coll_comm *cc) {
    const int p = cc->size;
    for (int step = 0; step < p - 1; ++step) {
        const int out = (cc->rank - step + p) % p;
        COLL_TRY(pass(call, cc, out, (out - 1 + p) % p));
    }
    return MPI_SUCCESS;
}
