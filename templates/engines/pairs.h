/* Which ranks take part in recursive halving and doubling if p is no power of two. */
#ifndef PAIRS_H
#define PAIRS_H

#include "coll.h"

/*
 * Let q be the largest power of two up to p. The first 2(p - q) ranks form pairs. One rank of each
 * pair, the guest, gives its operands to the other and takes no further part. So q ranks are left:
 * number v is in pair v, or is rank v + p - q. Runs of numbers are runs of ranks.
 */
struct pairs {
    int q, pairs;
    int number; /* of this rank, -1 for a guest */
    int keep;   /* a rank that shall not be a guest, or -1 */
};

/* The rank that has a number; and the first rank of those that it stands for, one or a pair. */
int coll_pairs_rank_of(const struct pairs *pairs, int number);
int coll_pairs_first_rank(const struct pairs *pairs, int number);

/* What the q ranks do that are left. There is room for as many elements as a rank brings. */
typedef int pairs_function(const struct coll_call *call, const struct coll_comm *cc,
                           const struct pairs *pairs, char *room);

/*
 * Guests give their operands to their partners, then `among` does the collective among the others.
 * The root of a reduce is no guest. In the other collectives guests get their results at the end.
 */
int coll_pairs_reduce(const struct coll_call *call, const struct coll_comm *cc,
                      pairs_function *among);
int coll_pairs_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                         pairs_function *among);
int coll_pairs_reduce_scatter(const struct coll_call *call, const struct coll_comm *cc,
                              pairs_function *among);

#endif
