/* Allgathers in which every rank sends its own block to all others, and forwards nothing. */
#ifndef OWN_BLOCK_H
#define OWN_BLOCK_H

#include "coll.h"

/* An allgather(v) as an alltoall(v): what a rank has for every other rank is its own block. */
struct coll_call coll_own_block_to_all(const struct coll_call *call, const struct coll_comm *cc);

#endif
