/* The ring algorithm of allgather and allgatherv, in the order of the ranks. */
#ifndef RING_ALLGATHER_H
#define RING_ALLGATHER_H

#include "coll.h"

/* Brings the blocks of all ranks to all ranks: every rank passes on the block that came last. */
int coll_ring_allgather(const struct coll_call *call, const struct coll_comm *cc);

#endif
