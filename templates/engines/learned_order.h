/* In which order the ranks of a communicator usually arrive, as they learn it from their calls. */
#ifndef LEARNED_ORDER_H
#define LEARNED_ORDER_H

#include "coll.h"

/*
 * How long ranks waited in earlier calls. A rank that waits long came early, as all leave at about
 * the same time, or have their first results then: so no clocks are compared. Levels are logarithms
 * of these times, small enough for the tags of messages that are sent anyway.
 */
struct learned_order {
    double mean;            /* seconds that this rank was in its calls; later ones count more */
    double begin;           /* of the current call */
    double complete;        /* when this rank learned that all have come; 0: at the end */
    int calls;              /* whether any has ended */
    unsigned turns;         /* calls so far of routines in which not all ranks tell at a time */
    unsigned char levels[]; /* [rank], equal on all ranks; 0: not known yet */
};

enum {
    ARRIVAL_LEVELS = 64,
    ARRIVAL_TAG = 16 /* and those above it, for two levels: within the tags that MPI grants */
};

/*
 * What is known of a collective's calls on a communicator; NULL on all ranks if one of them has no
 * memory for it: then nothing is known, and nothing is learned. A call begins, and ends.
 * Collectives do not share it: ranks that come late to an allreduce leave it together, and so come
 * together to the broadcast behind it.
 */
struct learned_order *coll_learned_begin(const struct coll_call *call, const struct coll_comm *cc);
void coll_learned_end(struct learned_order *arrivals);

/*
 * This rank has a result: so all ranks have come. What a call does after that is not waiting; the
 * first time counts.
 */
void coll_learned_complete(struct learned_order *arrivals);

/* Note the level of a rank. All ranks note the same. */
void coll_learned_note(struct learned_order *arrivals, int rank, int level);

/* The level of this rank's own mean time. */
int coll_learned_own(const struct learned_order *arrivals);

/* Put ranks in the order in which they usually arrive; those that do together stay as they are. */
void coll_learned_sort(const struct learned_order *arrivals, int *ranks, int count);

/*
 * How many of the last of these ranks, which are in order, are late: the first of them waits for
 * them more than twice as long as a call takes without them. At most half of all.
 */
int coll_learned_late(const struct learned_order *arrivals, const int *ranks, int count);

/* Two levels as a tag. */
static inline int arrival_tag(int one, int other) {
    return ARRIVAL_TAG + one * ARRIVAL_LEVELS + other;
}

static inline int arrival_one(int tag) {
    return (tag - ARRIVAL_TAG) / ARRIVAL_LEVELS;
}

static inline int arrival_other(int tag) {
    return (tag - ARRIVAL_TAG) % ARRIVAL_LEVELS;
}

#endif
