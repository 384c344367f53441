/* The blocks of an alltoall as packed bytes, call->bytes for each of them. */
#include "block_pack.h"

int coll_block_pack(const struct coll_call *call, const struct coll_comm *cc, int to,
                    char *packed) {
    int position = 0;
    return PMPI_Pack(coll_send_block(call, to), call->send_count, call->send_type, packed,
                     (int)call->bytes, &position, cc->comm);
}

int coll_block_unpack(const struct coll_call *call, const struct coll_comm *cc, int from,
                      const char *packed) {
    int position = 0;
    return PMPI_Unpack(packed, (int)call->bytes, &position, coll_recv_block(call, from),
                       call->recv_count, call->recv_type, cc->comm);
}
