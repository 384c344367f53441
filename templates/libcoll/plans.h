/* Inside libcoll: what the plans of persistent collectives share. */
#ifndef PLANS_H
#define PLANS_H

#include "persistent.h"

/* LIBCOLL_PERSISTENT: what plans are made of; the least of all ranks' counts. */
enum coll_plan_choice {
    COLL_PLAN_NATIVE, /* nothing is planned */
    COLL_PLAN_AUTO,   /* what is best by the size of the messages */
    COLL_PLAN_WINDOW, /* the schedule for all sizes, with few messages under way */
    COLL_PLAN_TOKENS, /* the same, with tokens */
};
enum coll_plan_choice coll_plan_choice(void);

/*
 * Whether there can be a plan, before anything is made for one. First from what every rank knows of
 * all, then from what they add up to, over communicators that are there: collective. If a rank is
 * `unable`, no rank has a plan. If *possible, the operation keeps the sums.
 */
int coll_may_plan(const struct coll_call *call, const struct coll_comm *cc,
                  const struct coll_routine *routine, coll_planner *planner);
int coll_sum_up(const struct coll_call *call, const struct coll_comm *cc, coll_planner *planner,
                int unable, double *sums, int *possible);

/* The least LIBCOLL_PERSISTENT of all ranks, in their sums. */
enum coll_plan_choice coll_least_choice(const double *sums);

/* plan_exchange.c: the same of alltoall and alltoallv; this rank's part of the sums. */
int coll_may_exchange(const struct coll_call *call, const struct coll_comm *cc);
int coll_sum_exchange(const struct coll_call *call, const struct coll_comm *cc, double *sums);
enum coll_plan_choice coll_judge_exchange(const struct coll_comm *cc, const double *sums);

/* Whether all ranks say yes, and none wants native collectives; collective. */
int coll_all_agree(const struct coll_operation *operation, int yes, int *all);

/* Lanes of all plans: in a run, the steps of the first one that can start do so before others. */
enum { COLL_LANE_FIRST, COLL_LANE_RECEIVES, COLL_LANE_SENDS, COLL_LANE_WORK };

/*
 * Bytes that a message has at most where it can be cut, of `bytes` that a rank sends or receives.
 * COLL_CHUNK is the least where nothing else says one.
 */
enum { COLL_CHUNK = 8192 };
MPI_Aint coll_chunk(MPI_Aint least, MPI_Aint bytes);

/*
 * The rank at a place of the order in which every link is used once, and the place of a rank; the
 * order of ranks where hosts are not known. A place may be any number: the line is closed.
 */
int coll_line_rank(const struct coll_comm *cc, int place);
int coll_line_place(const struct coll_comm *cc, int rank);

/* Whether so many elements at an address are plain bytes; and the size of one. */
int coll_is_plain(MPI_Datatype type, MPI_Aint *size);

/* plan_reduced.c: whether a step can combine operands of a call, whatever the application frees;
 * and their size. */
int coll_may_reduce_elements(const struct coll_call *call, MPI_Aint *size);
coll_work coll_reduce_elements;

#endif
