/* The broadcast as routines see it: contiguous bytes. */
#include "coll.h"

/*
 * The ranks of a broadcast may describe the same bytes by different counts and types, so the
 * message is cut by packed bytes, never by elements.
 */
static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    int dense, position = 0;
    COLL_TRY(coll_is_dense(view->recv_type, &dense));
    view->recv = view->recvbuf;
    if (dense)
        return MPI_SUCCESS;
    COLL_TRY(coll_allocate(view->bytes, scratch));
    view->recv = *scratch;
    if (cc->rank != view->root)
        return MPI_SUCCESS;
    return PMPI_Pack(view->recvbuf, view->recv_count, view->recv_type, *scratch, (int)view->bytes,
                     &position, cc->comm);
}

static int finish(const struct coll_call *view, const struct coll_comm *cc) {
    int position = 0;
    if (view->recv == view->recvbuf || cc->rank == view->root)
        return MPI_SUCCESS;
    return PMPI_Unpack(view->recv, (int)view->bytes, &position, view->recvbuf, view->recv_count,
                       view->recv_type, cc->comm);
}

static double copies(const struct coll_call *call, int size, int dense) {
    (void)size;
    (void)dense;
    return (double)call->bytes;
}

const struct coll_view coll_view_bcast = {
    .measure = coll_measure_received, .prepare = prepare, .finish = finish, .copies = copies};
