/* The elements of a reduction as blocks, one for each rank or place. */
#include <stddef.h>

#include "vector_blocks.h"

MPI_Aint coll_vector_block_start(const struct coll_call *call, int p, int number) {
    return call->starts != NULL ? call->starts[number] : (MPI_Aint)call->recv_count * number / p;
}

struct block coll_vector_block(const struct coll_call *call, int p, int number) {
    const MPI_Aint first = coll_vector_block_start(call, p, number);
    return (struct block){first, (int)(coll_vector_block_start(call, p, number + 1) - first)};
}
