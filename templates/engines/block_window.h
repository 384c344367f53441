/* Blocks of an alltoallv in step order, some bytes at a time; empty ones are skipped. */
#ifndef BLOCK_WINDOW_H
#define BLOCK_WINDOW_H

#include "coll.h"

/* Which blocks have been exchanged already; both ends of a block say the same. */
struct block_done {
    const char *to, *from; /* [rank] */
};

/*
 * Exchange the blocks of more than `longer_than` packed bytes. A rank sends as many at a time as
 * `in_flight` bytes hold, at least one, and receives likewise. Lengths are the two ends' own, so
 * each rank has a window of its own. Blocks that are `done`, unless it is NULL, are left out.
 */
int coll_block_window(const struct coll_call *call, const struct coll_comm *cc,
                      MPI_Count longer_than, MPI_Count in_flight, const struct block_done *done);

#endif
