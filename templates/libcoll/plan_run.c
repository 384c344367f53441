/*
 * A run of the steps of a persistent collective, from its start to its end. Nothing here waits, or
 * makes progress: the MPI library may call this from within its own.
 */
#include "persistent.h"

#ifdef COLL_PERSISTENT

#ifdef COLL_TRACED /* messages of a plan are no events of the call that makes progress */
#undef PMPI_Wait
#endif

/* A library that was built with newer headers than the MPI library it runs with. */
#pragma weak PMPIX_Request_is_complete

/*
 * How many receives all operations of the process have posted: some MPI libraries can take no more
 * than two thousand, and wait within the call that posts one more. An operation may always have a
 * few: others could keep it from going on otherwise. What it receives is in an order in which
 * nothing waits for what comes later, see its planner.
 */
enum { RECEIVES_MOST = 512, RECEIVES_ALWAYS = 16 };
static int posted;

void coll_restart_runs(void) {
    posted = 0;
}

/* Whether a lane may start its next step. */
static int may_begin(const struct coll_operation *operation, const struct coll_lane *lane) {
    if (lane->next == lane->count)
        return 0;
    const struct coll_step *step = &operation->steps[lane->steps[lane->next]];
    const int under_way = lane->next - lane->oldest;
    if (step->receives && posted >= RECEIVES_MOST && under_way >= RECEIVES_ALWAYS)
        return 0;
    return under_way < lane->window && step->missing == 0;
}

void coll_begin_run(struct coll_operation *operation) {
    for (int i = 0; i < operation->count; ++i) {
        operation->steps[i].missing = operation->steps[i].needs;
        operation->steps[i].is_started = operation->steps[i].is_done = 0;
    }
    for (int i = 0; i < COLL_LANES; ++i)
        operation->lanes[i].next = operation->lanes[i].oldest = 0;
    operation->running_count = 0;
    operation->left = operation->count;
}

static void complete(struct coll_operation *operation, struct coll_step *step) {
    step->is_done = 1;
    posted -= step->receives;
    --operation->left;
    for (int i = 0; i < step->thens; ++i)
        --operation->steps[operation->thens[step->first_then + i]].missing;
}

static int begin(struct coll_operation *operation, int number) {
    struct coll_step *step = &operation->steps[number];
    if (step->work != NULL) {
        COLL_TRY(step->work(operation, step));
        complete(operation, step);
        return MPI_SUCCESS;
    }
    COLL_TRY(PMPI_Start(&step->request));
    step->is_started = 1;
    posted += step->receives;
    if (step->before < 0 || operation->steps[step->before].is_done)
        operation->running[operation->running_count++] = number;
    return MPI_SUCCESS;
}

/* Start what may start, until nothing more may; *some is set if anything did. */
static int begin_all(struct coll_operation *operation, int *some) {
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < COLL_LANES; ++i) {
            struct coll_lane *lane = &operation->lanes[i];
            for (;;) {
                while (lane->oldest < lane->next &&
                       operation->steps[lane->steps[lane->oldest]].is_done)
                    ++lane->oldest;
                if (!may_begin(operation, lane))
                    break;
                COLL_TRY(begin(operation, lane->steps[lane->next++]));
                again = *some = 1;
            }
        }
    }
    return MPI_SUCCESS;
}

/* The receive behind one that is complete, if it has started; else -1. */
static int follower(const struct coll_operation *operation, int number) {
    const int next = operation->steps[number].next;
    return next >= 0 && operation->steps[next].is_started ? next : -1;
}

/*
 * Complete the messages that have ended. None of these calls waits, so none makes progress. A plan
 * may have thousands of receives, and messages of a row are matched in order: of each row, only the
 * first receive is looked at. It ends without those behind it, as its sender has started it before
 * them.
 */
static int end_messages(struct coll_operation *operation, int *some) {
    int kept = 0, error = MPI_SUCCESS;
    for (int i = 0; i < operation->running_count; ++i) {
        int number = operation->running[i];
        while (number >= 0 && error == MPI_SUCCESS &&
               PMPIX_Request_is_complete(operation->steps[number].request)) {
            error = PMPI_Wait(&operation->steps[number].request, MPI_STATUS_IGNORE);
            complete(operation, &operation->steps[number]);
            number = follower(operation, number);
            *some = 1;
        }
        if (number >= 0)
            operation->running[kept++] = number;
    }
    operation->running_count = kept;
    return error;
}

/* After an error: nothing starts any more, and receives end as far as they can be cancelled. */
static void give_up(struct coll_operation *operation, int error) {
    operation->error = error;
    operation->running_count = 0;
    for (int i = 0; i < operation->count; ++i) {
        struct coll_step *step = &operation->steps[i];
        if (!step->is_started || step->is_done)
            continue;
        operation->running[operation->running_count++] = i;
        if (step->receives)
            PMPI_Cancel(&step->request);
    }
}

/*
 * The end of an operation after an error, as of coll_abandon(): first all its receives have ended,
 * so that none writes any more to where there may be something else by then. One whose data is on
 * the way cannot be cancelled, and ends when that has come. Sends are left to the MPI library. They
 * may wait for a rank that never receives, and read our memory until then, so it stays.
 */
static void end_receives(struct coll_operation *operation) {
    int kept = 0, receives = 0;
    for (int i = 0; i < operation->running_count; ++i) {
        struct coll_step *step = &operation->steps[operation->running[i]];
        if (PMPIX_Request_is_complete(step->request)) {
            PMPI_Wait(&step->request, MPI_STATUS_IGNORE);
            posted -= step->receives;
            continue;
        }
        operation->running[kept++] = operation->running[i];
        receives += step->receives;
    }
    operation->running_count = kept;
    operation->left = receives;
    operation->is_read = kept > 0;
}

int coll_run_steps(struct coll_operation *operation) {
    int error = operation->error;
    for (int some = 1; some && error == MPI_SUCCESS && operation->left > 0;) {
        some = 0;
        error = end_messages(operation, &some);
        if (error == MPI_SUCCESS)
            error = begin_all(operation, &some);
    }
    if (error != operation->error)
        give_up(operation, error);
    if (error != MPI_SUCCESS)
        end_receives(operation);
    return operation->left == 0;
}

#endif
