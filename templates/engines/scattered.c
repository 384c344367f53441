/* What compositions of a reduce_scatter, or of a reduce_scatter_block, have in common. */
#include "scattered.h"

const void *coll_scattered_input(const struct coll_call *call) {
    return call->sendbuf == MPI_IN_PLACE ? call->recvbuf : call->sendbuf;
}

int coll_scattered_count(const struct coll_call *call, const struct coll_comm *cc) {
    MPI_Count count = 0;
    for (int rank = 0; rank < cc->size; ++rank)
        count += coll_recv_count(call, rank);
    return (int)count;
}

int coll_scattered_reduce(const struct coll_call *call, const struct coll_comm *cc,
                          const struct coll_parameters *parameters, char *all) {
    const struct coll_call part = {.collective = COLL_REDUCE,
                                   .sendbuf = coll_scattered_input(call),
                                   .recvbuf = all,
                                   .recv_count = coll_scattered_count(call, cc),
                                   .recv_type = call->recv_type,
                                   .op = call->op};
    return coll_run_part(parameters, 0, part, cc);
}

int coll_scattered_keep_own(const struct coll_call *call, const struct coll_comm *cc,
                            const char *all) {
    MPI_Aint start = 0, stride;
    COLL_TRY(coll_extent(1, call->recv_type, &stride));
    for (int rank = 0; rank < cc->rank; ++rank)
        start += (MPI_Aint)coll_recv_count(call, rank);
    return coll_copy_elements(call, cc, all + start * stride, call->recvbuf,
                              (int)coll_recv_count(call, cc->rank));
}
