/* A reduce-scatter on a circulant graph. */
#ifndef CIRCULANT_HALVING_H
#define CIRCULANT_HALVING_H

#include "coll.h"

/*
 * Leave the block of this rank complete; the others are overwritten. `room` is for the blocks of
 * p/2 ranks. Operands do not meet in the order of the ranks.
 */
int coll_circulant_halving(const struct coll_call *call, const struct coll_comm *cc, char *room);

#endif
