/* The reduction to a root as routines see it. */
#include "coll.h"

/* Ranks other than the root have no buffer for a result: they collect theirs in scratch. */
static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    struct coll_elements elements = {0};
    COLL_TRY(coll_extent(1, view->recv_type, &view->recv_stride));
    view->recv = view->recvbuf;
    if (cc->rank != view->root) {
        COLL_TRY(coll_elements_for(view, view->recv_count, &elements));
        view->recv = elements.data;
        *scratch = elements.memory;
    }
    if (view->sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_copy_elements(view, cc, view->sendbuf, view->recv, view->recv_count);
}

static double copies(const struct coll_call *call, int size, int dense) {
    (void)size;
    (void)dense;
    return (double)call->bytes;
}

const struct coll_view coll_view_reduce = {.measure = coll_measure_reduction,
                                           .prepare = prepare,
                                           .finish = coll_nothing_to_finish,
                                           .copies = copies};
