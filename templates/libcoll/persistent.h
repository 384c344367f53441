/* Inside libcoll: persistent collectives, where the MPI library lets us take part in its progress.
 */
#ifndef PERSISTENT_H
#define PERSISTENT_H

#include <stdatomic.h>

#include "coll.h"

/*
 * MPIX_Async_start, by which MPICH calls us whenever it makes progress. Others have no such call.
 * Without our functions for Fortran, a program with mpi_f08 makes plans that it cannot start.
 */
#if MPI_VERSION >= 4 && defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40300300 &&               \
    !defined(LIBCOLL_NO_FORTRAN)
#define COLL_PERSISTENT
#endif

/*
 * What all persistent collectives of a communicator share, by which each of them holds it. Their
 * messages have a communicator of their own: other routines receive with MPI_ANY_TAG on the private
 * one, or have any tags there.
 */
struct coll_plans {
    MPI_Comm comm;
    _Atomic(MPI_Comm) origin; /* the application's; MPI_COMM_NULL once it has ended */
    MPI_Errhandler handler;   /* of that communicator, from then on */
    atomic_int users;         /* these operations, and the communicator while it lives */
    atomic_int lent;          /* calls of that error handler, or the application's, under way */
    int used;                 /* operations so far: each has tags of its own */
};

/* lifetime.c: the function of this name in the next library, and whether the program calls ours. */
typedef void coll_any_function(void);
coll_any_function *coll_next_of(const char *name, coll_any_function *of_mpi);
int coll_is_first(const char *name, coll_any_function *ours);
#define COLL_NEXT(name) ((__typeof__(&P##name))coll_next_of(#name, (coll_any_function *)P##name))

struct coll_operation;
struct coll_step;

/* An error of an operation of which the application's error handler is still to be told. */
struct coll_failure {
    struct coll_plans *plans;
    int error;
    struct coll_failure *next;
};

/* What a step does at once, within this process. */
typedef int coll_work(const struct coll_operation *operation, const struct coll_step *step);

struct coll_step {
    MPI_Request request; /* a persistent message; MPI_REQUEST_NULL: work */
    coll_work *work;
    const void *from;
    void *to;
    MPI_Aint count; /* of elements or bytes, as the work understands it */

    int receives;     /* whether the message is one that comes */
    int row;          /* of such a message: its source and its stream */
    int before, next; /* its neighbours in its row; -1: none, or no such message */

    int needs;   /* how many other steps have to be complete before it starts */
    int missing; /* of these, in this run */
    int is_started, is_done;
    int first_then, thens; /* the steps that need this one: so many of operation->thens */
};

/* Steps that start in their order, when all but the latest `window` before it are complete. */
struct coll_lane {
    int window;
    int *steps, count, room;
    int next, oldest; /* in a run: the next to start; the first that is not complete */
};

/* The messages that must not meet those of another operation. */
enum coll_stream { COLL_STREAM_DATA, COLL_STREAM_TOKENS, COLL_STREAM_END, COLL_STREAMS };

enum { COLL_LANES = 4 };

/*
 * What ranks tell of a call at its init, added up over all of them: how many cannot have a plan,
 * want each choice of plan, have data with gaps; messages with data to others, and their bytes.
 */
enum {
    COLL_SUM_UNABLE,
    COLL_SUM_CHOICES,
    COLL_SUM_GAPS = COLL_SUM_CHOICES + 4,
    COLL_SUM_MESSAGES,
    COLL_SUM_BYTES,
    COLL_SUMS
};

/*
 * A persistent collective: steps on this rank. The application has `handle`, a persistent receive
 * of nothing from this process itself. It starts with the operation, and the message for it is sent
 * when all steps are complete. So all that the MPI library does with requests is right for it.
 */
struct coll_operation {
    MPI_Request handle;
    const struct coll_comm *cc; /* while it is made; the communicator may be gone later */
    struct coll_plans *plans;
    struct coll_failure *room_for_failure; /* NULL once it has failed */
    struct coll_call call;
    double sums[COLL_SUMS];
    int tag, rank;

    struct coll_step *steps;
    int count, room;
    struct coll_lane lanes[COLL_LANES];
    int *pairs, pair_count, pair_room; /* while it is made: a step, and one that needs it */
    int *thens;
    char *scratch;
    MPI_Datatype own_types[2]; /* of a rank's block for itself, as it is sent and received */

    int *running, running_count; /* messages that have started, but those behind another one */
    int left;                    /* steps that are not complete */
    int is_active, is_freed;
    int error;   /* an operation that has one ends, and does not start again */
    int is_read; /* it ended, and messages that the MPI library still sends read the scratch */
    struct coll_operation *next; /* of its slot in the table of handles */
    struct coll_operation *next_active;
};

/*
 * plan_steps.c: make an operation of steps; an error stays in it, and no step after it is made. All
 * receives are in one lane, so those of a row start in the order in which they are matched.
 */
int coll_add_send(struct coll_operation *operation, int lane, enum coll_stream stream,
                  const void *data, MPI_Count count, MPI_Datatype type, int to);
int coll_add_receive(struct coll_operation *operation, int lane, enum coll_stream stream,
                     void *data, MPI_Count count, MPI_Datatype type, int from);
int coll_add_work(struct coll_operation *operation, int lane, coll_work *work, const void *from,
                  void *to, MPI_Aint count);
void coll_add_need(struct coll_operation *operation, int step, int needed);
int coll_copy_bytes(const struct coll_operation *operation, const struct coll_step *step);

/* When all steps are there: put them in order. And when nothing starts them any more. */
int coll_order_steps(struct coll_operation *operation);
void coll_free_steps(struct coll_operation *operation);

/* plan_run.c: begin a run of the steps; go on with it, until nothing more may start now: whether
 * the run has ended. After an error, it ends when all its receives have. */
void coll_begin_run(struct coll_operation *operation);
int coll_run_steps(struct coll_operation *operation);
void coll_restart_runs(void); /* MPI has ended, and with it all messages */

/*
 * plans.c, plan_exchange.c, plan_reduced.c, plan_rooted.c: fill in the steps of a call that a
 * routine would serve; *found stays 0 if there is no plan for it, alike on all ranks. Collective,
 * on the communicator of plans.
 */
typedef int coll_planner(struct coll_operation *operation, const struct coll_routine *routine,
                         int *found);
coll_planner coll_plan_allreduce, coll_plan_barrier, coll_plan_bcast, coll_plan_exchange,
    coll_plan_gather, coll_plan_gathered, coll_plan_reduce, coll_plan_scatter, coll_plan_scattered;

/* links.c: the cluster as a tree. */
struct pattern_tree;
void coll_cluster_tree(struct pattern_tree *tree, int *first_host);

/*
 * The whole of an MPI_..._init: returns 1 if the operation is ours, or wrong, and *error is what
 * the function returns; 0 where the MPI library is to do it.
 */
int coll_persistent_init(struct coll_call *call, coll_planner *planner, MPI_Request *request,
                         int *error);
void coll_persistent_finalize(int ends);
void coll_persistent_restart(void);

#endif
