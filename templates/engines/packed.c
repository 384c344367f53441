/* Blocks as packed bytes, for routines that cut blocks or put them together. */
#include "packed.h"

void coll_packed_send(struct coll_call *view, const char *packed) {
    view->send = packed;
    view->send_count = (int)view->bytes;
    view->send_type = MPI_PACKED;
    view->send_stride = view->bytes;
}

void coll_packed_receive(struct coll_call *view, char *packed) {
    view->recv = packed;
    view->recv_count = (int)view->bytes;
    view->recv_type = MPI_PACKED;
    view->recv_stride = view->bytes;
}

int coll_packed_blocks(const char *blocks, MPI_Aint stride, int count, MPI_Datatype type,
                       MPI_Aint bytes, char *packed, const struct coll_comm *cc) {
    for (int rank = 0; rank < cc->size; ++rank) {
        int position = 0;
        COLL_TRY(PMPI_Pack(blocks + rank * stride, count, type, packed + rank * bytes, (int)bytes,
                           &position, cc->comm));
    }
    return MPI_SUCCESS;
}

int coll_packed_unpack_others(const struct coll_call *call, const struct coll_comm *cc,
                              const char *packed) {
    MPI_Aint stride;
    COLL_TRY(coll_extent(call->recv_count, call->recv_type, &stride));
    for (int rank = 0; rank < cc->size && packed != NULL; ++rank) {
        int position = 0;
        if (rank != cc->rank)
            COLL_TRY(PMPI_Unpack(packed + rank * call->bytes, (int)call->bytes, &position,
                                 (char *)call->recvbuf + rank * stride, call->recv_count,
                                 call->recv_type, cc->comm));
    }
    return MPI_SUCCESS;
}
