/* Rounds: ranks send a segment of every message, then the next segment of every message. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include "coll.h"

/* Whether stamps are kept of every segment: libcoll's stamps.c. */
#if defined(COLL_STAMPS) && !defined(COLL_TRACED)
#define ROUNDS_STAMPED
#endif

struct rounds {
    const struct coll_call *call;
    const struct coll_comm *cc;
    MPI_Aint from, end;            /* the bytes of every message that go in this round */
    int in_flight, number;         /* steps that may be under way; the steps until now */
    MPI_Request *receives, *sends; /* those of a step have place number % in_flight */
#ifdef ROUNDS_STAMPED
    int round;
    struct rounds_segment {
        int round, from;
    } *awaited; /* by each place of the receives; from MPI_PROC_NULL: none */
#endif
};

/*
 * Carry out rounds until all messages of an alltoall have gone; its blocks are plain bytes.
 * `round` calls coll_rounds_step() for each step of a round. Up to `in_flight` steps are under way.
 */
int coll_rounds_run(const struct coll_call *call, const struct coll_comm *cc, int in_flight,
                    int segment_size, int round(struct rounds *rounds));

/* In the next step, receive from a rank and send to a rank, each MPI_PROC_NULL for no rank. */
int coll_rounds_step(struct rounds *rounds, int from, int to);

#endif
