/* Recursive halving of a vector, in the order of the ranks. */
#ifndef HALVING_H
#define HALVING_H

#include "coll.h"
#include "pairs.h"
#include "vector_blocks.h"

enum { HALVING_STEPS_MOST = 32 };

/* The elements that a rank went on with after each step, and those that its partner did. */
struct halving {
    int steps;
    struct block kept[HALVING_STEPS_MOST], given[HALVING_STEPS_MOST];
};

/*
 * In step k from 0 on, numbers v and v ^ 2^k swap one half of their elements for the other, and
 * combine. As neighbours begin, what is combined is always of two adjoining runs of ranks: the
 * order is kept. `room` is for all elements.
 */
int coll_halving_reduce(const struct coll_call *call, const struct coll_comm *cc,
                        const struct pairs *pairs, char *room, struct halving *halving);

/* Send elements of `out` to a rank and receive elements of `in` from the same. */
int coll_halving_swap(const struct coll_call *call, const struct coll_comm *cc, int partner,
                      char *out, struct block given, char *in, struct block taken);

#endif
