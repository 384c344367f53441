/* An allgather around a ring of all ranks, in segments. */
#ifndef RING_PIPELINE_H
#define RING_PIPELINE_H

#include "coll.h"

/* A ring of all ranks: each passes blocks to the rank at the next place, the last to the first. */
struct ring_of_ranks {
    int place;          /* of this rank */
    const int *order;   /* [place] -> position; NULL: the same number */
    const int *rank_of; /* [position] -> rank; NULL: the same number */
};

/*
 * Brings the blocks of all ranks to all ranks. Every rank passes a segment on as soon as it has
 * it. Blocks are plain bytes (COLL_DENSE), of any lengths; a segment is part of one block.
 */
int coll_ring_pipeline(const struct coll_call *call, const struct coll_comm *cc,
                       const struct ring_of_ranks *ring, int segment_size);

#endif
