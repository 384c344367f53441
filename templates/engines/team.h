/* Some of the ranks, and what they do among themselves: for hierarchies. */
#ifndef TEAM_H
#define TEAM_H

#include "coll.h"

/* So many ranks, with numbers from 0 on. */
struct team {
    int members, number; /* the latter of this rank */
    const int *ranks;    /* [number] */
};

/* The ranks of this rank's part. */
struct team coll_team_of_part(const struct coll_comm *cc, const struct coll_parted *parted);

/* The hosts as parts. */
struct coll_parted coll_team_hosts(const struct coll_comm *cc);

/*
 * Combine the operands of a team: for all members, or for number 0. A message longer than
 * segment_size goes in segments around a ring, or along a chain; a shorter one goes whole, by
 * recursive doubling or along a binomial tree. Two members always exchange whole messages, as that
 * is one latency instead of two. Operands do not meet in the order of the ranks.
 */
int coll_team_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                        const struct team *team, int segment_size);
int coll_team_reduce(const struct coll_call *call, const struct coll_comm *cc,
                     const struct team *team, int segment_size);

/* Do an allreduce among the ranks with this number in their parts; this rank is among them. */
int coll_team_allreduce_across(const struct coll_call *call, const struct coll_comm *cc,
                               const struct coll_parted *parted, int number, int segment_size);

/* Bring the result of number 0 to all members: in segments along a chain, or whole down a tree. */
int coll_team_broadcast(const struct coll_call *call, const struct coll_comm *cc,
                        const struct team *team, int segment_size);

#endif
