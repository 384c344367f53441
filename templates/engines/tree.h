/* Trees of all ranks: the ranks above and below a rank. */
#ifndef TREE_H
#define TREE_H

#include "coll.h"

enum { TREE_CHILDREN_MOST = 64 };

/* A rank in a tree, by the ranks beside it. */
struct tree_node {
    int parent; /* MPI_PROC_NULL for the root */
    int children;
    int child[TREE_CHILDREN_MOST]; /* in the order of serving them */
};

/*
 * The complete tree in which a rank has up to `arity` children, at most TREE_CHILDREN_MOST. The
 * ranks fill it level by level, in their order from the root on. With arity 1 it is a chain.
 */
struct tree_node coll_tree_by_levels(const struct coll_comm *cc, int root, int arity);

/*
 * The chain from the root on, and around, along an order of the ranks: order[place_of[rank]] is the
 * rank. Around the depth-first order of the hosts every edge is used at most once, so such a chain
 * has no contention, whatever its root (Lemma 9).
 */
struct tree_node coll_tree_along(const struct coll_comm *cc, int root, const int *order,
                                 const int *place_of);

/*
 * A chain and a binary tree to the root of a reduction. If the operation commutes, they are those
 * of tree_by_levels. If not, the ranks before the root and the ranks after it are a part each, so
 * that the ranks below any rank are runs beside it, and operands can stay in their order. A chain
 * comes from the first rank up, and one from the last rank down. In a binary tree, the middle rank
 * of a part is at its top.
 */
struct tree_node coll_tree_chain_to_root(const struct coll_call *call, const struct coll_comm *cc);
struct tree_node coll_tree_binary_to_root(const struct coll_call *call, const struct coll_comm *cc);

#endif
