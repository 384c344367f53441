/* A k-nomial tree of ranks, up which operands go, and down which the result goes. */
#ifndef REDUCTION_TREE_H
#define REDUCTION_TREE_H

#include "coll.h"

/* The radix of a binomial tree. */
enum { REDUCTION_TREE_BINOMIAL = 2 };

/* So many ranks with numbers from 0, the top, on. */
struct reduction_tree {
    int members, number; /* the latter of this rank */
    const int *ranks;    /* [number]; NULL: all ranks from `top` on, around */
    int top;
};

/* The tree of all ranks; and that of the ranks on this rank's host, with its leader at the top. */
struct reduction_tree coll_reduction_tree_of_all(const struct coll_comm *cc, int top);
struct reduction_tree coll_reduction_tree_of_host(const struct coll_comm *cc);

/*
 * Combine `count` elements of all members, those of this rank at `mine`, on the one at the top.
 * Operands stay in the order of the numbers: of the ranks, if the top is rank 0.
 */
int coll_reduction_tree_combine(const struct coll_call *call, const struct coll_comm *cc,
                                const struct reduction_tree *tree, int radix, char *mine,
                                int count);

/* Bring the result from the top to all members, down a binomial tree. */
int coll_reduction_tree_broadcast(const struct coll_call *call, const struct coll_comm *cc,
                                  const struct reduction_tree *tree);

#endif
