/* The view of reductions whose result is scattered, in blocks of one length or of any. */
#include "scattered_view.h"

int coll_scattered_view_prepare(struct coll_call *view, const struct coll_comm *cc,
                                char **scratch) {
    const void *input = view->sendbuf == MPI_IN_PLACE ? view->recvbuf : view->sendbuf;
    const size_t table = (size_t)(cc->size + 1) * sizeof(MPI_Aint);
    MPI_Count total = 0;
    MPI_Aint low, bytes;
    for (int rank = 0; rank < cc->size; ++rank)
        total += coll_recv_count(view, rank);
    COLL_TRY(coll_extent(1, view->recv_type, &view->recv_stride));
    COLL_TRY(coll_span(view, total, &low, &bytes));
    COLL_TRY(coll_allocate((MPI_Aint)table + COLL_ALIGNMENT + bytes, scratch));
    MPI_Aint *starts = (MPI_Aint *)(void *)*scratch;
    starts[0] = 0;
    for (int rank = 0; rank < cc->size; ++rank)
        starts[rank + 1] = starts[rank] + coll_recv_count(view, rank);
    view->starts = starts;
    view->recv = *scratch + (table + COLL_ALIGNMENT - table % COLL_ALIGNMENT) - low;
    return coll_copy_elements(view, cc, input, view->recv, (int)total);
}

int coll_scattered_view_finish(const struct coll_call *view, const struct coll_comm *cc) {
    return coll_copy_elements(view, cc, coll_element(view, view->recv, view->starts[cc->rank]),
                              view->recvbuf, (int)coll_recv_count(view, cc->rank));
}

double coll_scattered_view_copies(double bytes_of_all, int size) {
    return bytes_of_all + (size + 1.0) * sizeof(MPI_Aint) + COLL_ALIGNMENT;
}
