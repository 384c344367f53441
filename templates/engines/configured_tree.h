/* A tree whose nodes, and the ranks that do their work, are in tables (docs/trees.md). */
#ifndef CONFIGURED_TREE_H
#define CONFIGURED_TREE_H

#include "coll.h"

/*
 * The tables, in positions. Contributors of a node come before it, and the root is the last node. A
 * contributor below the number of ranks is a rank; from there on it is a node, that number less.
 */
struct configured_tree {
    const void *owner; /* an address of the routine: what a rank has to do is found once */
    int nodes;
    const int *worker;      /* [node] -> rank that combines operands, hands the result down */
    const int *first;       /* [node] -> its first contributor; [nodes] -> how many there are */
    const int *contributor; /* node by node */
};

/* How ranks of one host hand over data; memory serves short messages, if they can share any. */
enum { CONFIGURED_TREE_MESSAGES = 1, CONFIGURED_TREE_SHARED = 2 };

/*
 * Carry out a collective along the tree. A rank may do the work of several nodes, and nodes need no
 * message where a contributor is at the same rank. The result passes each rank once. In a
 * reduction, operands meet in the order of the tables, whatever the ranks are: for operations that
 * commute. Where the root of a call is not at the root of the tree, one more message goes between
 * them.
 */
int coll_configured_tree_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                                   const struct configured_tree *tree, int on_host);
int coll_configured_tree_reduce(const struct coll_call *call, const struct coll_comm *cc,
                                const struct configured_tree *tree, int on_host);
int coll_configured_tree_bcast(const struct coll_call *call, const struct coll_comm *cc,
                               const struct configured_tree *tree, int on_host);
int coll_configured_tree_barrier(const struct coll_call *call, const struct coll_comm *cc,
                                 const struct configured_tree *tree, int on_host);

#endif
