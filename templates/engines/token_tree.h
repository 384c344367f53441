/* A combining tree whose root can move to the rank that comes last. */
#ifndef TOKEN_TREE_H
#define TOKEN_TREE_H

#include "coll.h"

/* When the root moves. */
enum token_moves {
    TOKEN_STAYS = 0,
    TOKEN_GOES = 1 << 0,      /* within a call, to the only child that is missing */
    TOKEN_REMEMBERS = 1 << 1, /* a call begins with the root where the last rank came before */
    TOKEN_PER_BRANCH = 1 << 2 /* each child of place 0 has a token; with TOKEN_GOES alone */
};

/*
 * A barrier or an allreduce, whichever the call is, on a tree in which places have up to `arity`
 * children. Ranks whose parts of the tree are complete tell their parents. The rank that has the
 * token is the root. If exactly one of its children is missing for `patience` microseconds, and
 * for as long as the others came apart, the token goes there, with what all others brought. With a
 * patience of 0 it goes at once. A root whose children are all there releases all
 * ranks along the tree.
 *
 * With TOKEN_PER_BRANCH, a token stays below one child of place 0. The rank that has it when that
 * part is complete tells place 0, and place 0 releases all ranks.
 *
 * The order of operands follows from the arrivals.
 */
int coll_token_tree(const struct coll_call *call, const struct coll_comm *cc, int arity, int moves,
                    int patience);

#endif
