/* The alltoall as routines see it. */
#include "packed.h"

/* Alltoall in place sends what the receive buffer holds: send from a packed copy of it. */
static int send_copy(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    COLL_TRY(coll_allocate(cc->size * view->bytes, scratch));
    COLL_TRY(coll_packed_blocks(view->recv, view->recv_stride, view->recv_count, view->recv_type,
                                view->bytes, *scratch, cc));
    coll_packed_send(view, *scratch);
    return MPI_SUCCESS;
}

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    view->recv = view->recvbuf;
    COLL_TRY(coll_extent(view->recv_count, view->recv_type, &view->recv_stride));
    if (view->sendbuf == MPI_IN_PLACE)
        return send_copy(view, cc, scratch);
    view->send = view->sendbuf;
    COLL_TRY(coll_extent(view->send_count, view->send_type, &view->send_stride));
    return coll_copy(coll_send_block(view, cc->rank), view->send_count, view->send_type,
                     coll_recv_block(view, cc->rank), view->recv_count, view->recv_type, cc);
}

/*
 * For routines that cut blocks or put them together: plain bytes in place of any datatype, on
 * the ranks where they are not already. `scratch` has room for what is sent and for what comes.
 */
static int pack(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    int dense;
    COLL_TRY(coll_is_dense(view->send_type, &dense));
    if (!dense) {
        COLL_TRY(coll_allocate(cc->size * view->bytes, &scratch[0]));
        COLL_TRY(coll_packed_blocks(view->send, view->send_stride, view->send_count,
                                    view->send_type, view->bytes, scratch[0], cc));
    }
    coll_packed_send(view, dense ? view->send : scratch[0]);
    COLL_TRY(coll_is_dense(view->recv_type, &dense));
    if (!dense)
        COLL_TRY(coll_allocate(cc->size * view->bytes, &scratch[1]));
    coll_packed_receive(view, dense ? view->recv : scratch[1]);
    return MPI_SUCCESS;
}

static double copies(const struct coll_call *call, int size, int dense) {
    const int sides = dense ? 2 : call->sendbuf == MPI_IN_PLACE;
    return (double)sides * size * (double)call->bytes;
}

const struct coll_view coll_view_alltoall = {.measure = coll_measure_received,
                                             .prepare = prepare,
                                             .finish = coll_nothing_to_finish,
                                             .pack = pack,
                                             .unpack = coll_packed_unpack_others,
                                             .copies = copies};
