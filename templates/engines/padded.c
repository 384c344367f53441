/* The elements of a call in equally long blocks, for compositions whose parts ask for them. */
#include <stddef.h>

#include "coll.h"
#include "padded.h"

/* The elements that a rank brings. */
static char *input_of(const struct coll_call *call) {
    return call->sendbuf == MPI_IN_PLACE ? call->recvbuf : (char *)(MPI_Aint)call->sendbuf;
}

/* Filled up with what is there: operations may not take anything. */
int coll_padded_make(const struct coll_call *call, const struct coll_comm *cc,
                     struct padded *padded) {
    const int p = cc->size, count = call->recv_count / p + (call->recv_count % p != 0);
    const MPI_Aint all = (MPI_Aint)p * count; /* maybe more than an int counts */
    MPI_Aint stride;
    *padded = (struct padded){count, {NULL, input_of(call)}};
    if (all == call->recv_count)
        return MPI_SUCCESS;
    COLL_TRY(coll_extent(1, call->recv_type, &stride));
    COLL_TRY(coll_elements_for(call, all, &padded->elements));
    char *elements = padded->elements.data;
    COLL_TRY(coll_copy_elements(call, cc, input_of(call), elements, call->recv_count));
    for (MPI_Aint i = call->recv_count; i < all; ++i)
        COLL_TRY(coll_copy_elements(call, cc, input_of(call), elements + i * stride, 1));
    return MPI_SUCCESS;
}

int coll_padded_reduce_scatter(const struct coll_call *call, const struct coll_comm *cc,
                               const struct coll_parameters *parameters,
                               const struct padded *padded, char *block) {
    const struct coll_call part = {.collective = COLL_REDUCE_SCATTER_BLOCK,
                                   .sendbuf = padded->elements.data,
                                   .recvbuf = block,
                                   .recv_count = padded->count,
                                   .recv_type = call->recv_type,
                                   .op = call->op};
    return coll_run_part(parameters, 0, part, cc);
}
