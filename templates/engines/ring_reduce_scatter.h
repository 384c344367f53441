/* A reduce-scatter around a ring of all ranks, in segments. */
#ifndef RING_REDUCE_SCATTER_H
#define RING_REDUCE_SCATTER_H

#include "coll.h"
#include "ring_place.h"

/*
 * Leave the block of this place complete; the others are overwritten. Block blocks[i] is for place
 * i, or block i if there is no table. Operands do not meet in the order of the ranks.
 */
int coll_ring_reduce_scatter(const struct coll_call *call, const struct coll_comm *cc,
                             const struct ring_place *here, const int *blocks, int segment_size);

#endif
