/* Allgathers in which every rank sends its own block to all others, and forwards nothing. */
#include "own_block.h"

/* An int is enough for the count: all blocks together have at most INT_MAX bytes. */
struct coll_call coll_own_block_to_all(const struct coll_call *call, const struct coll_comm *cc) {
    struct coll_call all = *call;
    all.send = coll_recv_block(call, cc->rank);
    all.send_stride = 0; /* the same block for every rank */
    all.send_count = (int)coll_recv_count(call, cc->rank);
    all.send_type = call->recv_type;
    all.send_blocks = (struct coll_blocks){0};
    return all;
}
