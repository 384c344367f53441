/* Recursive multiplying: an allreduce in steps of groups. */
#ifndef RECURSIVE_MULTIPLYING_H
#define RECURSIVE_MULTIPLYING_H

#include "coll.h"

/*
 * Combine the operands of all members. This rank has the place `place` among them, and rank_at()
 * gives the rank at a place. Operands stay in the order of the places.
 */
int coll_recursive_multiplying(const struct coll_call *call, const struct coll_comm *cc,
                               int members, int place,
                               int (*rank_at)(const struct coll_comm *cc, int place), int radix);

#endif
