/* An alltoallv in which the first rank of each host, its leader, carries short blocks for all. */
#ifndef VECTOR_LEADERS_H
#define VECTOR_LEADERS_H

#include "block_window.h"

/* The most bytes that a leader holds; tests build with less. */
#ifndef COLL_LEADER_MOST
#define COLL_LEADER_MOST (1 << 30)
#endif

/* The members are the ranks, host by host: member k is rank cc->order[k]. */
struct vector_leaders {
    const struct coll_call *call; /* its blocks are plain bytes */
    const struct coll_comm *cc;
    const struct coll_parameters *parameters; /* for `exchange`; the engine reads none */

    /* Leaders send one another what their hosts have for other hosts, from `out` to `in`. */
    int (*exchange)(const struct vector_leaders *leaders);

    int ranks;   /* on this host */
    int longest; /* bytes of the longest block that leaders carry; a longer one goes straight */

    /*
     * By host, then by the member that a block is of, then by the member that it is for: its
     * length, or 0 if a leader does not carry it. Those of a host begin at vector_leaders_first.
     */
    int *out_lengths, *in_lengths;
    char *out, *in;            /* the blocks in the same order */
    int *out_start, *in_start; /* [host] -> where the bytes of a host begin; [hosts] -> the end */
};

/*
 * Carry out the alltoallv. Blocks of more than `longest` bytes go from rank to rank after the
 * others, in rounds, with `in_flight` bytes at a time (block_rounds.h). Of the shorter ones, a
 * leader holds what its ranks send and what they receive, each twice, and never more than
 * COLL_LEADER_MOST bytes: with many ranks, `longest` is less than was asked for.
 */
int coll_vector_leaders_run(const struct coll_call *call, const struct coll_comm *cc,
                            const struct coll_parameters *parameters, int longest, int in_flight,
                            int exchange(const struct vector_leaders *leaders));

/*
 * An exchange for any hosts, in their order: with so many hosts at a time. Those that are `done`,
 * by host, are left out, unless it is NULL.
 */
int coll_vector_leaders_in_turn(const struct vector_leaders *leaders, int at_a_time,
                                const struct block_done *done);

/* The rank of a host's leader. */
static inline int vector_leaders_rank(const struct vector_leaders *leaders, int host) {
    return leaders->cc->order[leaders->cc->first_place[host]];
}

/* How many blocks this host's ranks have for those of another one, and where these begin. */
static inline int vector_leaders_count(const struct vector_leaders *leaders, int host) {
    const int *first = leaders->cc->first_place + host;
    return leaders->ranks * (first[1] - first[0]);
}

static inline int vector_leaders_first(const struct vector_leaders *leaders, int host) {
    return leaders->ranks * leaders->cc->first_place[host];
}

#endif
