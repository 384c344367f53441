/* A combining tree whose root can move to the rank that comes last. */
#ifndef TOKEN_TREE_H
#define TOKEN_TREE_H

#include "coll.h"

/* When the root moves. */
enum token_moves {
    TOKEN_STAYS = 0,
    TOKEN_GOES = 1 << 0,      /* within a call, to the only child that is missing */
    TOKEN_REMEMBERS = 1 << 1, /* a call begins with the root where the last rank came before */
    TOKEN_PER_BRANCH =
        1 << 2 /* with TOKEN_GOES alone: each child of place 0 has a token at first */
};

/*
 * A barrier or, if the call is an allreduce, that: a tree in which places have up to `arity`
 * children. Ranks whose parts of the tree are complete say so to their parents. The rank that has
 * the token is the root. If exactly one of its children is missing for `patience` microseconds,
 * the token goes there, with what all others brought. A root whose children are all there releases
 * everyone along the tree. With TOKEN_PER_BRANCH, tokens go within what is below a child of place
 * 0; who has one when that is complete tells place 0, which releases. Operands meet in an order
 * that follows from the arrivals.
 */
int coll_token_tree(const struct coll_call *call, const struct coll_comm *cc, int arity, int moves,
                    int patience);

#endif
