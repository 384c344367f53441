/* The gather as routines see it. */
#include "packed.h"

/* The root may not say what it sends, the others do not say what is received. */
static int measure(struct coll_call *call) {
    int rank, size;
    COLL_TRY(coll_member(call->comm, &rank, &size));
    return rank == call->root ? coll_packed_bytes(call->recv_count, call->recv_type, &call->bytes)
                              : coll_packed_bytes(call->send_count, call->send_type, &call->bytes);
}

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    (void)scratch;
    view->send = view->sendbuf;
    view->recv = view->recvbuf;
    if (cc->rank != view->root)
        return MPI_SUCCESS;
    COLL_TRY(coll_extent(view->recv_count, view->recv_type, &view->recv_stride));
    if (view->sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_copy(view->sendbuf, view->send_count, view->send_type,
                     coll_recv_block(view, cc->rank), view->recv_count, view->recv_type, cc);
}

/* For routines that cut blocks or put them together: plain bytes in place of any datatype. */
static int pack(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    int dense, position = 0;
    if (cc->rank == view->root) {
        COLL_TRY(coll_is_dense(view->recv_type, &dense));
        if (!dense)
            COLL_TRY(coll_allocate(cc->size * view->bytes, &scratch[1]));
        coll_packed_receive(view, dense ? view->recv : scratch[1]);
        return MPI_SUCCESS;
    }
    COLL_TRY(coll_is_dense(view->send_type, &dense));
    if (!dense) {
        COLL_TRY(coll_allocate(view->bytes, &scratch[0]));
        COLL_TRY(PMPI_Pack(view->send, view->send_count, view->send_type, scratch[0],
                           (int)view->bytes, &position, cc->comm));
    }
    coll_packed_send(view, dense ? view->send : scratch[0]);
    return MPI_SUCCESS;
}

/* Only the root has received anything. */
static int unpack(const struct coll_call *call, const struct coll_comm *cc, const char *packed) {
    return packed == NULL ? MPI_SUCCESS : coll_packed_unpack_others(call, cc, packed);
}

/* The most on the root. */
static double copies(const struct coll_call *call, int size, int dense) {
    return dense ? (double)size * (double)call->bytes : 0;
}

const struct coll_view coll_view_gather = {.measure = measure,
                                           .prepare = prepare,
                                           .finish = coll_nothing_to_finish,
                                           .pack = pack,
                                           .unpack = unpack,
                                           .copies = copies};
