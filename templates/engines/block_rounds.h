/* Blocks of an alltoallv, plain bytes, in rounds of segments; empty ones are skipped. */
#ifndef BLOCK_ROUNDS_H
#define BLOCK_ROUNDS_H

#include "coll.h"

/* Beside the tags of coll.h: a routine may have other messages between the same ranks under way. */
enum { COLL_TAG_ROUNDS = 5 };

/* What a rank does in rounds: in each, a segment of each block, in the order of steps. */
struct block_rounds {
    const struct coll_call *call;
    const struct coll_comm *cc;
    MPI_Count longer_than;        /* bytes; blocks of no more are left out */
    int segment_size;             /* bytes */
    int in_flight;                /* bytes that a rank sends, and receives, at a time */
    struct rounds_window *window; /* of coll_rounds_begin; NULL if that failed */
};

/* Blocks of more than `longer_than` bytes, from the beginning to the end. */
int coll_block_rounds(const struct coll_call *call, const struct coll_comm *cc,
                      MPI_Count longer_than, int segment_size, int in_flight);

/*
 * Begin; nothing is sent yet. Both ends of a block give the same length, longer_than and
 * segment_size. Until coll_rounds_complete, a routine may wait only for messages that need no
 * segment to arrive.
 */
int coll_rounds_begin(struct block_rounds *rounds);

/* Go on as long as nothing needs to be waited for. */
int coll_rounds_go_on(const struct block_rounds *rounds);

/* Go on to the end. */
int coll_rounds_complete(const struct block_rounds *rounds);

/* Release what they hold; what is under way, after an error, is given up. */
void coll_rounds_end(const struct block_rounds *rounds);

#endif
