/* A tree of the ranks that usually come early, for data that goes to a root, or from it. */
#ifndef EARLY_TREE_H
#define EARLY_TREE_H

#include "coll.h"
#include "early_ranks.h"
#include "tree.h"

/* The most late ranks: each costs one rank a message, one after the other. */
enum { EARLY_TREE_LATE_MOST = 4 };

/*
 * Messages that go one way cannot tell all ranks which of them come late. So in few of a routine's
 * calls on a communicator, all ranks wait for each other at the end, and tell each other how long
 * they waited: in the 2nd, 3rd, 5th, 9th, 17th and 33rd call, and in every 32nd after that.
 */
struct early_tree {
    struct early_ranks ranks;
    struct learned_order *arrivals; /* NULL if ranks cannot keep it: then all are early */
    int is_due;                     /* whether ranks tell at the end of this call */
};

/*
 * A call with this root begins, and ends: with what went wrong in between, which is returned. After
 * an error, this rank tells nothing. Calls are counted for each `owner`, an address of a routine.
 */
int coll_early_tree_begin(const struct coll_call *call, const struct coll_comm *cc,
                          const void *owner, struct early_tree *tree);
int coll_early_tree_end(const struct coll_comm *cc, struct early_tree *tree, int error);

/*
 * This rank, which is early, in the tree of the early ones. Each has up to `arity` children, at
 * most TREE_CHILDREN_MOST; with arity 1 it is a chain. If the root is `apart`, it has one child.
 */
struct tree_node coll_early_tree_node(const struct early_tree *tree, int arity, int apart);

#endif
