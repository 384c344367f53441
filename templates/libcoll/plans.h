/* Inside libcoll: what the plans of persistent collectives share. */
#ifndef PLANS_H
#define PLANS_H

#include "persistent.h"

/* LIBCOLL_PERSISTENT: what plans are made of; the least of all ranks' counts. */
enum coll_plan_kind {
    COLL_PLAN_NATIVE, /* nothing is planned */
    COLL_PLAN_AUTO,   /* what is best by the size of the messages */
    COLL_PLAN_WINDOW, /* the schedule for all sizes, with few messages under way */
    COLL_PLAN_TOKENS, /* the same, with tokens */
};
enum coll_plan_kind coll_plan_kind(void);

/* Whether all ranks say yes, and none wants native collectives; collective. */
int coll_all_agree(const struct coll_operation *operation, int yes, int *all);

/* Lanes of all plans: in a run, the steps of the first one that can start do so before others. */
enum { COLL_LANE_FIRST, COLL_LANE_RECEIVES, COLL_LANE_SENDS, COLL_LANE_WORK };

/* Bytes that a message has at most where it can be cut, of `bytes` that a rank sends or receives.
 */
MPI_Aint coll_chunk(MPI_Aint least, MPI_Aint bytes);

#endif
