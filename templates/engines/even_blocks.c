/* The elements of an allreduce as equally long blocks, which an allgather can bring to all. */
#include <stddef.h>

#include "coll.h"
#include "even_blocks.h"
#include "used.h"

int coll_even_blocks_make(const struct coll_call *call, const struct coll_comm *cc,
                          struct even_blocks *blocks) {
    const int p = cc->size, rest = call->recv_count % p;
    blocks->count = call->recv_count / p + (rest != 0);
    blocks->elements = (struct coll_elements){NULL, call->recv};
    if (rest == 0)
        return MPI_SUCCESS;
    return coll_elements_for(call, (MPI_Count)p * blocks->count, &blocks->elements);
}

char *coll_even_blocks_at(const struct coll_call *call, const struct even_blocks *blocks,
                          int rank) {
    return coll_element(call, blocks->elements.data, (MPI_Aint)blocks->count * rank);
}

/* The blocks of the last ranks may have no elements. */
MPI_Aint coll_even_blocks_start(const struct coll_call *call, const struct even_blocks *blocks,
                                int rank) {
    const MPI_Aint start = (MPI_Aint)blocks->count * rank;
    return start < call->recv_count ? start : call->recv_count;
}

int coll_even_blocks_count(const struct coll_call *call, const struct even_blocks *blocks,
                           int rank) {
    return (int)(coll_even_blocks_start(call, blocks, rank + 1) -
                 coll_even_blocks_start(call, blocks, rank));
}

int coll_even_blocks_gather(const struct coll_call *call, const struct coll_comm *cc,
                            const struct even_blocks *blocks, const char *allgather) {
    const struct coll_call part = {.collective = COLL_ALLGATHER,
                                   .comm = call->comm,
                                   .sendbuf = MPI_IN_PLACE,
                                   .recvbuf = blocks->elements.data,
                                   .recv_count = blocks->count,
                                   .recv_type = call->recv_type,
                                   .bytes = call->bytes / call->recv_count * blocks->count};
    COLL_TRY(coll_used_run(allgather, &part, cc));
    if (blocks->elements.memory == NULL)
        return MPI_SUCCESS;
    return coll_copy_elements(call, cc, blocks->elements.data, call->recv, call->recv_count);
}
