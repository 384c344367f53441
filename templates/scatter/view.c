/* The scatter as routines see it. */
#include "packed.h"

/* The root may not say what it receives, the others do not say what is sent. */
static int measure(struct coll_call *call) {
    int rank, size;
    COLL_TRY(coll_member(call->comm, &rank, &size));
    return rank == call->root ? coll_packed_bytes(call->send_count, call->send_type, &call->bytes)
                              : coll_packed_bytes(call->recv_count, call->recv_type, &call->bytes);
}

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    (void)scratch;
    view->send = view->sendbuf;
    view->recv = view->recvbuf;
    if (cc->rank != view->root)
        return MPI_SUCCESS;
    return coll_extent(view->send_count, view->send_type, &view->send_stride);
}

/*
 * The root's own block. The others need not wait for it; and programs may have it arrive where
 * another block was sent from, which MPI libraries let pass.
 */
static int finish(const struct coll_call *view, const struct coll_comm *cc) {
    if (cc->rank != view->root || view->recvbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_copy(coll_send_block(view, cc->rank), view->send_count, view->send_type,
                     view->recvbuf, view->recv_count, view->recv_type, cc);
}

/* For routines that cut blocks or put them together: plain bytes in place of any datatype. */
static int pack(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    int dense;
    if (cc->rank == view->root) {
        COLL_TRY(coll_is_dense(view->send_type, &dense));
        if (!dense) {
            COLL_TRY(coll_allocate(cc->size * view->bytes, &scratch[0]));
            COLL_TRY(coll_packed_blocks(view->send, view->send_stride, view->send_count,
                                        view->send_type, view->bytes, scratch[0], cc));
        }
        coll_packed_send(view, dense ? view->send : scratch[0]);
        return MPI_SUCCESS;
    }
    COLL_TRY(coll_is_dense(view->recv_type, &dense));
    if (!dense)
        COLL_TRY(coll_allocate(view->bytes, &scratch[1]));
    coll_packed_receive(view, dense ? view->recv : scratch[1]);
    return MPI_SUCCESS;
}

/* The block of a rank other than the root, if it is in the scratch. */
static int unpack(const struct coll_call *call, const struct coll_comm *cc, const char *packed) {
    int position = 0;
    if (packed == NULL)
        return MPI_SUCCESS;
    return PMPI_Unpack(packed, (int)call->bytes, &position, call->recvbuf, call->recv_count,
                       call->recv_type, cc->comm);
}

/* The most on the root. */
static double copies(const struct coll_call *call, int size, int dense) {
    return dense ? (double)size * (double)call->bytes : 0;
}

const struct coll_view coll_view_scatter = {.measure = measure,
                                            .prepare = prepare,
                                            .finish = finish,
                                            .pack = pack,
                                            .unpack = unpack,
                                            .copies = copies};
