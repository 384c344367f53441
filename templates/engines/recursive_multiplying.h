/* Recursive multiplying: an allreduce in steps of groups. */
#ifndef RECURSIVE_MULTIPLYING_H
#define RECURSIVE_MULTIPLYING_H

#include "coll.h"

/*
 * Ranks that have places among each other; `place` is this rank's. At a place is the rank of that
 * number, or the one that `order` has there. Where `first` says where parts of the order begin, the
 * members are the first ranks of these parts, and their places are the numbers of the parts.
 */
struct multiplying_members {
    int count, place;
    const int *order, *first; /* or NULL */
};

/* Combine the operands of all members. Operands stay in the order of the places. */
int coll_recursive_multiplying(const struct coll_call *call, const struct coll_comm *cc,
                               const struct multiplying_members *members, int radix);

#endif
