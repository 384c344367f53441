/* The allgather as routines see it. */
#include "packed.h"

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    (void)scratch;
    view->recv = view->recvbuf;
    COLL_TRY(coll_extent(view->recv_count, view->recv_type, &view->recv_stride));
    if (view->sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_copy(view->sendbuf, view->send_count, view->send_type,
                     coll_recv_block(view, cc->rank), view->recv_count, view->recv_type, cc);
}

/* For routines that cut blocks: plain bytes in place of any datatype. */
static int pack(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    const char *own = coll_recv_block(view, cc->rank);
    int dense, position = 0;
    COLL_TRY(coll_is_dense(view->recv_type, &dense));
    if (!dense) {
        COLL_TRY(coll_allocate(cc->size * view->bytes, &scratch[1]));
        COLL_TRY(PMPI_Pack(own, view->recv_count, view->recv_type,
                           scratch[1] + cc->rank * view->bytes, (int)view->bytes, &position,
                           cc->comm));
    }
    coll_packed_receive(view, dense ? view->recv : scratch[1]);
    return MPI_SUCCESS;
}

/* What pack may copy: the blocks of all ranks. */
static double copies(const struct coll_call *call, int size, int dense) {
    return dense ? (double)size * (double)call->bytes : 0;
}

const struct coll_view coll_view_allgather = {.measure = coll_measure_received,
                                              .prepare = prepare,
                                              .finish = coll_nothing_to_finish,
                                              .pack = pack,
                                              .unpack = coll_packed_unpack_others,
                                              .copies = copies};
