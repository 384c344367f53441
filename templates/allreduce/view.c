/* The allreduce as routines see it. */
#include "coll.h"

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    (void)scratch;
    view->recv = view->recvbuf;
    COLL_TRY(coll_extent(1, view->recv_type, &view->recv_stride));
    if (view->sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_copy_elements(view, cc, view->sendbuf, view->recv, view->recv_count);
}

const struct coll_view coll_view_allreduce = {
    .measure = coll_measure_reduction, .prepare = prepare, .finish = coll_nothing_to_finish};
