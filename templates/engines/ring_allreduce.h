/* An allreduce around a ring, in segments. */
#ifndef RING_ALLREDUCE_H
#define RING_ALLREDUCE_H

#include "coll.h"
#include "ring_place.h"

/*
 * Blocks go twice around the ring, which may be of some of the ranks: first they collect all
 * operands, not in the order of the ranks, then they bring the result to all.
 */
int coll_ring_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                        const struct ring_place *here, int segment_size);

#endif
