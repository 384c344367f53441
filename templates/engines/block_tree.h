/* The binomial trees of gather and scatter: the blocks of a subtree go in one message. */
#ifndef BLOCK_TREE_H
#define BLOCK_TREE_H

#include "coll.h"

/*
 * A binomial tree of all ranks, and the subtree below one of them. Ranks are numbered from the root
 * on, around the end of their order. Number k stands below number k without its lowest bit, so the
 * numbers of a subtree follow one another.
 */
struct block_tree {
    const int *order; /* [place] -> rank; NULL: places are ranks */
    int root;         /* the place of the root */
    int size;         /* of the whole tree */
    int number;       /* of this rank, at the top of the subtree */
    int count;        /* ranks in the subtree */
    int bit;          /* lowest of the number, which the parent lacks; children have lower ones */
};

/* The tree of `size` ranks, and the subtree of the rank at a place. */
struct block_tree coll_block_tree_at(int place, int root, const int *order, int size);

/* The rank of a number. */
int coll_block_tree_rank(const struct block_tree *tree, int number);

/* How many ranks there are from the child of that bit down; 0 without such a child. */
int coll_block_tree_below(const struct block_tree *tree, int bit);

/* Makes a type of the blocks of `count` ranks from a number on, each at its place on the root. */
int coll_block_tree_run(const struct block_tree *tree, int number, int count, MPI_Datatype block,
                        MPI_Datatype *run);

#endif
