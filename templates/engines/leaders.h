/* An alltoall in which the first rank of each host, its leader, speaks for all of them. */
#ifndef LEADERS_H
#define LEADERS_H

#include "coll.h"

/* The members are the ranks, host by host: member k is rank cc->order[k]. */
struct leaders {
    const struct coll_call *call; /* its blocks are plain bytes */
    const struct coll_comm *cc;
    const struct coll_parameters *parameters; /* for `exchange`; the engine reads none */

    /* Leaders send one another what their hosts have for other hosts, from `out` to `in`. */
    int (*exchange)(const struct leaders *leaders);

    int ranks; /* on this host */
    char *out, *in;
    MPI_Datatype block; /* of the call */
    MPI_Request *requests;
};

/* Carry out the alltoall. A leader allocates the blocks of all ranks of its host, twice. */
int coll_leaders_run(const struct coll_call *call, const struct coll_comm *cc,
                     const struct coll_parameters *parameters,
                     int exchange(const struct leaders *leaders));

/* An exchange for any hosts: in each step, leaders send to the next host in their order. */
int coll_leaders_in_turn(const struct leaders *leaders);

/* The rank of a host's leader. */
static inline int leaders_rank(const struct leaders *leaders, int host) {
    return leaders->cc->order[leaders->cc->first_place[host]];
}

static inline int leaders_ranks_on(const struct leaders *leaders, int host) {
    return leaders->cc->first_place[host + 1] - leaders->cc->first_place[host];
}

/* How many blocks this host's ranks have for the ranks of another host. */
static inline int leaders_count(const struct leaders *leaders, int host) {
    return leaders->ranks * leaders_ranks_on(leaders, host);
}

/* Where these blocks are in `out`, and where those from that host belong in `in`. */
static inline MPI_Aint leaders_offset(const struct leaders *leaders, int host) {
    return leaders->ranks * leaders->cc->first_place[host] * leaders->call->bytes;
}

#endif
