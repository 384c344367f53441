/*
 * Persistent collectives: what starts them, carries them on and frees them.
 *
 * An operation is a list of point-to-point steps, made at its init. The steps are persistent
 * requests of the MPI library, on a communicator that lives as long as they do, whatever the
 * application frees. Whenever the MPI library makes progress for a request or a collective,
 * whichever it is, it calls poll() below (MPIX_Async_start), and steps that can start do so. The
 * application waits for a native request. So no function that waits or tests has to be
 * intercepted. What waits for the synchronisation of a window does not call poll() in MPICH.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dispatch.h"
#include "libcoll.h"
#include "plans.h"

#ifdef COLL_PERSISTENT

#ifdef COLL_TRACED /* messages of a plan are no events of the call that makes progress */
#undef PMPI_Isend
#endif

/* A library that was built with newer headers than the MPI library it runs with. */
#pragma weak PMPIX_Async_start

enum { SLOTS = 256 };

/* While MPI ends, so many seconds without any step are the end of what has not ended. */
static const double rest_most = 10;

/*
 * One lock for all operations of the process. The MPI library calls poll() with a lock of its own,
 * so poll() never waits for this lock, and no thread that holds it asks for poll() to be called.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coll_operation *slots[SLOTS]; /* by handle */
static struct coll_operation *active;       /* those that have started and not ended */
static struct coll_operation *abandoned;    /* those that had not ended when MPI did */
static struct coll_operation *ended;        /* those that were freed while active */
static int is_ending;                       /* in MPI_Finalize, or that of the last session */
static long left_before;                    /* steps of active operations, at the last change */
static double rests_since;                  /* when that was */
static int is_hooked;                       /* whether poll() is called */
static atomic_int live;                     /* operations in the table */
static struct coll_failure *failures;       /* that are to be told, the latest first */
static atomic_int telling;                  /* calls of poll() that call error handlers now */

/* An error handler that this thread is in, and the one that it was called in. */
struct handler_call {
    const struct coll_plans *plans;
    const struct handler_call *outer;
};

static _Thread_local const struct handler_call *innermost;

/* Fibonacci hashing (Knuth 1973, vol. 3, §6.4). */
static struct coll_operation **slot_of(MPI_Request handle) {
    return &slots[((uint64_t)(uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15)) >> 56];
}

static struct coll_operation *find(MPI_Request handle) {
    struct coll_operation *one = *slot_of(handle);
    while (one != NULL && one->handle != handle)
        one = one->next;
    return one;
}

/*
 * Not while this thread has the lock: with the last use of a datatype, the MPI library calls the
 * application's functions that delete the type's attributes.
 */
static void discard(struct coll_operation *operation) {
    coll_free_steps(operation);
    if (operation->handle != MPI_REQUEST_NULL)
        PMPI_Request_free(&operation->handle);
    for (int i = 0; i < 2; ++i)
        if (operation->own_types[i] != MPI_DATATYPE_NULL)
            PMPI_Type_free(&operation->own_types[i]);
    coll_plans_release(operation->plans);
    if (!operation->is_read)
        free(operation->scratch);
    free(operation->room_for_failure);
    free(operation);
}

static void enter_in_table(struct coll_operation *operation) {
    struct coll_operation **slot = slot_of(operation->handle);
    pthread_mutex_lock(&lock);
    operation->next = *slot;
    *slot = operation;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&live, 1);
}

static void leave_table(struct coll_operation *operation) {
    struct coll_operation **place = slot_of(operation->handle);
    while (*place != operation)
        place = &(*place)->next;
    *place = operation->next;
    atomic_fetch_sub(&live, 1);
}

/* With the lock: call_handler() or give_back() comes next for these plans. */
static void lend(struct coll_plans *plans) {
    atomic_fetch_add(&plans->users, 1);
    atomic_fetch_add(&plans->lent, 1);
}

/*
 * With the lock: whether operations of these plans may go on. While the application's error handler
 * is called, it may be that of the communicator of plans: an error of a message would call it here,
 * with the lock. But it may itself wait for operations, which go on then, without it.
 */
static int may_go_on(const struct coll_plans *plans) {
    const int lent = atomic_load(&plans->lent);
    int own = 0;
    if (lent == 0)
        return 1;
    for (const struct handler_call *one = innermost; one != NULL; one = one->outer)
        own += one->plans == plans;
    return own == lent && PMPI_Comm_set_errhandler(plans->comm, MPI_ERRORS_RETURN) == MPI_SUCCESS;
}

/* With the lock: an operation has ended with an error. It does not start again. */
static void fail(struct coll_operation *operation) {
    struct coll_failure *failure = operation->room_for_failure;
    operation->room_for_failure = NULL;
    *failure = (struct coll_failure){
        .plans = operation->plans, .error = operation->error, .next = failures};
    failures = failure;
    lend(operation->plans);
}

static struct coll_failure *take_failures(void) {
    struct coll_failure *taken = failures;
    failures = NULL;
    return taken;
}

/*
 * Without the lock: call_handler() is over, or does not come. With no other one under way, errors
 * of the plans' own messages are returned again, before operations may go on.
 */
static void give_back(struct coll_plans *plans) {
    pthread_mutex_lock(&lock);
    if (atomic_load(&plans->lent) == 1 && atomic_load(&plans->origin) == MPI_COMM_NULL)
        PMPI_Comm_set_errhandler(plans->comm, MPI_ERRORS_RETURN);
    atomic_fetch_sub(&plans->lent, 1);
    pthread_mutex_unlock(&lock);
    coll_plans_release(plans);
}

/*
 * Call the application's error handler, without the lock, as it may call us. It gets the
 * communicator of the plans where its own has ended.
 */
static void call_handler(struct coll_plans *plans, int error) {
    const struct handler_call call = {plans, innermost};
    const MPI_Comm origin = atomic_load(&plans->origin);
    innermost = &call;
    if (origin != MPI_COMM_NULL) {
        PMPI_Comm_call_errhandler(origin, error);
    } else if (plans->handler != MPI_ERRHANDLER_NULL) {
        PMPI_Comm_set_errhandler(plans->comm, plans->handler);
        PMPI_Comm_call_errhandler(plans->comm, error);
    }
    innermost = call.outer;
    give_back(plans);
}

static void tell(struct coll_failure *taken) {
    while (taken != NULL) {
        struct coll_failure *one = taken;
        taken = one->next;
        call_handler(one->plans, one->error);
        free(one);
    }
}

/* What the application's request cannot take, so that its completion is an error. */
static const char too_much;

/*
 * Complete the application's request: it receives this message of the process to itself. Nobody
 * waits for the message: its buffer stays, a start must not wait for another rank, and poll() must
 * not make progress.
 */
static void complete_request(const struct coll_operation *operation, int is_wrong) {
    MPI_Request message;
    if (PMPI_Isend(&too_much, is_wrong, MPI_BYTE, operation->rank, operation->tag + COLL_STREAM_END,
                   operation->plans->comm, &message) == MPI_SUCCESS)
        PMPI_Request_free(&message);
}

/* Carry an operation on; 1 if it has ended: then the application's request is complete. */
static int carry_on(struct coll_operation *operation) {
    if (!coll_run_steps(operation))
        return 0;
    if (operation->error != MPI_SUCCESS)
        fail(operation);
    complete_request(operation, operation->error != MPI_SUCCESS);
    operation->is_active = 0;
    return 1;
}

static void discard_all(struct coll_operation *first) {
    while (first != NULL) {
        struct coll_operation *one = first;
        first = one->next_active;
        discard(one);
    }
}

/* Carry on all that is active; operations that were freed meanwhile go when they have ended. */
static void carry_all_on(void) {
    struct coll_operation **place = &active;
    while (*place != NULL) {
        struct coll_operation *one = *place;
        if (!may_go_on(one->plans) || !carry_on(one)) {
            place = &one->next_active;
            continue;
        }
        *place = one->next_active;
        if (one->is_freed) {
            one->next_active = ended;
            ended = one;
        }
    }
}

static void abandon_all(void) {
    while (active != NULL) {
        struct coll_operation *one = active;
        active = one->next_active;
        one->next_active = abandoned;
        abandoned = one;
    }
}

/* While MPI ends: abandon all where nothing has gone on for some seconds. */
static void abandon_what_rests(void) {
    const double now = PMPI_Wtime();
    long left = 0;
    for (const struct coll_operation *one = active; one != NULL; one = one->next_active)
        left += one->left;
    if (left != left_before) {
        left_before = left;
        rests_since = now;
    } else if (now - rests_since > rest_most) {
        abandon_all();
    }
}

/*
 * Called by the MPI library as part of its progress. So are error handlers, and functions that
 * delete attributes: nothing else of ours is called while the application waits. They may start
 * operations, and make progress, which calls poll() again. The inner call must not be the last, as
 * the MPI library is still in the outer one.
 */
static int poll(MPIX_Async_thing thing) {
    (void)thing;
    if (pthread_mutex_trylock(&lock) != 0)
        return MPIX_ASYNC_NOPROGRESS;
    carry_all_on();
    if (is_ending)
        abandon_what_rests();
    struct coll_failure *failed = take_failures();
    struct coll_operation *gone = ended;
    ended = NULL;
    const int tells = failed != NULL || gone != NULL;
    const int is_over = active == NULL && !tells && atomic_load(&telling) == 0;
    if (is_over)
        is_hooked = 0;
    atomic_fetch_add(&telling, tells);
    pthread_mutex_unlock(&lock);
    tell(failed);
    discard_all(gone);
    atomic_fetch_sub(&telling, tells);
    return is_over ? MPIX_ASYNC_DONE : MPIX_ASYNC_NOPROGRESS;
}

/* Whether nobody has waited for the end of an operation: its request is active, and complete. */
static int is_unwaited(struct coll_operation *operation, int *unwaited) {
    MPI_Status status;
    int flag;
    COLL_TRY(PMPI_Request_get_status(operation->handle, &flag, &status));
    *unwaited = !flag || status.MPI_SOURCE != MPI_ANY_SOURCE;
    return MPI_SUCCESS;
}

/*
 * Why an operation cannot be started: it has failed, or runs, or nobody has waited for its end.
 * MPICH 4.3.2 takes the question itself for that wait, so the request is completed again.
 */
static int mistake_of(struct coll_operation *operation) {
    int unwaited, still;
    if (operation->error != MPI_SUCCESS)
        return operation->error;
    if (operation->is_active)
        return MPI_ERR_REQUEST;
    COLL_TRY(is_unwaited(operation, &unwaited));
    if (!unwaited)
        return MPI_SUCCESS;
    COLL_TRY(is_unwaited(operation, &still));
    if (!still) {
        COLL_TRY(PMPI_Start(&operation->handle));
        complete_request(operation, 0);
    }
    return MPI_ERR_REQUEST;
}

/* Start an operation, with the lock. */
static int start(struct coll_operation *operation) {
    operation->error = PMPI_Start(&operation->handle);
    if (operation->error != MPI_SUCCESS) {
        fail(operation);
        return operation->error;
    }
    coll_begin_run(operation);
    operation->is_active = 1;
    if (may_go_on(operation->plans) && carry_on(operation))
        return operation->error;
    operation->next_active = active;
    active = operation;
    return MPI_SUCCESS;
}

/* Have poll() called. If it cannot be, the next start tries again, even if that is a mistake. */
static int set_hook(void) {
    const int error = PMPIX_Async_start(poll, NULL, MPIX_STREAM_NULL);
    if (error == MPI_SUCCESS)
        return MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    is_hooked = 0;
    pthread_mutex_unlock(&lock);
    return error;
}

/* Start a request if it is that of an operation of ours; returns whether it is. */
static int start_ours(MPI_Request request, int *error) {
    struct coll_plans *plans = NULL;
    int is_wrong = 0, hook = 0;
    if (atomic_load(&live) == 0)
        return 0;
    pthread_mutex_lock(&lock);
    struct coll_operation *operation = find(request);
    if (operation != NULL) {
        *error = mistake_of(operation);
        is_wrong = *error != MPI_SUCCESS;
        if (!is_wrong) {
            coll_trace_start(operation->call.collective, operation->call.bytes);
            *error = start(operation);
        }
        hook = active != NULL && !is_hooked;
        is_hooked |= hook;
        if (is_wrong || hook)
            lend(plans = operation->plans);
    }
    struct coll_failure *failed = take_failures();
    pthread_mutex_unlock(&lock);
    const int refused = hook ? set_hook() : MPI_SUCCESS;
    tell(failed);
    if (refused != MPI_SUCCESS && !is_wrong) {
        is_wrong = 1;
        *error = refused;
    }
    if (is_wrong)
        call_handler(plans, *error);
    else if (plans != NULL)
        give_back(plans);
    return operation != NULL;
}

/* What serves requests that are not ours, and whether the program calls our functions at all. */
static struct {
    __typeof__(&PMPI_Start) start;
    __typeof__(&PMPI_Startall) startall;
    __typeof__(&PMPI_Request_free) request_free;
    __typeof__(&PMPI_Cancel) cancel;
    int is_called;
} next;

/* Our own functions, whichever of those names the program calls. */
#define OWN(name) __typeof__(P##name) own_##name __attribute__((alias(#name)))
static OWN(MPI_Start);
static OWN(MPI_Startall);
static OWN(MPI_Request_free);
static OWN(MPI_Cancel);
#define IS_FIRST(name) coll_is_first(#name, (coll_any_function *)own_##name)

static void look_around(void) {
    next.start = COLL_NEXT(MPI_Start);
    next.startall = COLL_NEXT(MPI_Startall);
    next.request_free = COLL_NEXT(MPI_Request_free);
    next.cancel = COLL_NEXT(MPI_Cancel);
    next.is_called = IS_FIRST(MPI_Start) && IS_FIRST(MPI_Startall) && IS_FIRST(MPI_Request_free) &&
                     IS_FIRST(MPI_Cancel);
}

static void look_around_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_around);
}

/*
 * Whether messages may start from within the progress of the MPI library. Over OFI, MPICH makes
 * progress anew where a message cannot start at once. With locks for threads, it aborts there, as
 * it enters a lock that it holds. A build with one lock for all does so in any call. Over UCX, no
 * start makes progress.
 */
static int may_start_within(void) {
    static const char device[] = "MPICH Device:", safe[] = "ch4:ucx";
    static const char *const names[] = {"MPIR_CVAR_CH4_NETMOD", "MPIR_PARAM_CH4_NETMOD",
                                        "MPICH_CH4_NETMOD"};
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, is_on = 0, level = MPI_THREAD_MULTIPLE;
    if (PMPI_Initialized(&is_on) == MPI_SUCCESS && is_on)
        PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return 1;
    if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS)
        return 0;
    const char *found = strstr(version, device);
    if (found == NULL || strstr(version, "--enable-thread-cs=global") != NULL)
        return 0;
    found += sizeof device - 1;
    found += strspn(found, " \t");
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const char *chosen = getenv(names[i]);
        if (chosen != NULL && strcasecmp(chosen, "ucx") != 0)
            return 0;
    }
    return strncmp(found, safe, sizeof safe - 1) == 0;
}

LIBCOLL_EXPORT int MPI_Start(MPI_Request *request) {
    int error = MPI_SUCCESS;
    if (request != NULL && start_ours(*request, &error))
        return error;
    look_around_once();
    return next.start(request);
}

static int has_ours(int count, const MPI_Request requests[]) {
    int ours = 0;
    if (atomic_load(&live) == 0 || requests == NULL)
        return 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count && !ours; ++i)
        ours = find(requests[i]) != NULL;
    pthread_mutex_unlock(&lock);
    return ours;
}

LIBCOLL_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
    look_around_once();
    if (!has_ours(count, requests))
        return next.startall(count, requests);
    for (int i = 0; i < count; ++i)
        COLL_TRY(own_MPI_Start(&requests[i]));
    return MPI_SUCCESS;
}

/*
 * The steps of an active operation go on: other ranks need them. The application may free its
 * request only while it is inactive (MPI 4.1, §6.13), but it is told so by nobody.
 */
static int free_ours(MPI_Request *request) {
    pthread_mutex_lock(&lock);
    struct coll_operation *operation = find(*request);
    const int is_ours = operation != NULL, rests = is_ours && !operation->is_active;
    if (is_ours) {
        leave_table(operation);
        operation->is_freed = 1;
        *request = MPI_REQUEST_NULL;
    }
    pthread_mutex_unlock(&lock);
    if (rests)
        discard(operation);
    return is_ours;
}

LIBCOLL_EXPORT int MPI_Request_free(MPI_Request *request) {
    if (request != NULL && atomic_load(&live) > 0 && free_ours(request))
        return MPI_SUCCESS;
    look_around_once();
    return next.request_free(request);
}

/* Collectives cannot be cancelled (MPI 4.1, §3.8.4). */
LIBCOLL_EXPORT int MPI_Cancel(MPI_Request *request) {
    struct coll_plans *plans = NULL;
    if (request != NULL && atomic_load(&live) > 0) {
        pthread_mutex_lock(&lock);
        const struct coll_operation *operation = find(*request);
        if (operation != NULL)
            lend(plans = operation->plans);
        pthread_mutex_unlock(&lock);
    }
    if (plans == NULL) {
        look_around_once();
        return next.cancel(request);
    }
    call_handler(plans, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
}

/*
 * The tags of the next operation on a communicator: inits are in the same order on all its ranks,
 * so they take the same. They are never used again, as the last rank may still have messages of one
 * that this one has freed. -1 when there are no more.
 */
static int next_tag(struct coll_plans *plans) {
    int *bound, found = 0;
    if (PMPI_Comm_get_attr(plans->comm, MPI_TAG_UB, &bound, &found) != MPI_SUCCESS || !found ||
        plans->used > *bound / COLL_STREAMS - 1)
        return -1;
    return COLL_STREAMS * plans->used++;
}

/* The steps of an operation, and its handle. */
static int build(struct coll_operation *operation, const struct coll_routine *routine,
                 coll_planner *planner, int *found) {
    if (operation->tag < 0)
        return MPI_SUCCESS;
    for (int lane = 0; lane < COLL_LANES; ++lane)
        operation->lanes[lane].window = INT_MAX;
    COLL_TRY(planner(operation, routine, found));
    if (!*found)
        return MPI_SUCCESS;
    COLL_TRY(operation->error);
    COLL_TRY(coll_order_steps(operation));
    operation->rank = operation->cc->rank;
    return PMPI_Recv_init(NULL, 0, MPI_BYTE, operation->rank, operation->tag + COLL_STREAM_END,
                          operation->plans->comm, &operation->handle);
}

/* An operation without steps; NULL if there is no memory. */
static struct coll_operation *allocate(void) {
    struct coll_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL)
        return NULL;
    operation->handle = MPI_REQUEST_NULL;
    operation->own_types[0] = operation->own_types[1] = MPI_DATATYPE_NULL;
    operation->room_for_failure = malloc(sizeof *operation->room_for_failure);
    if (operation->room_for_failure != NULL)
        return operation;
    free(operation);
    return NULL;
}

/* Give an operation its steps; it stays only if it can on all ranks. */
static int fill(struct coll_operation **operation, const struct coll_routine *routine,
                coll_planner *planner) {
    int found = 0, all = 0;
    const int error = build(*operation, routine, planner, &found);
    int ready = error == MPI_SUCCESS && found;
    const int agreed = PMPI_Allreduce(&ready, &all, 1, MPI_INT, MPI_MIN, (*operation)->plans->comm);
    (*operation)->cc = NULL;
    if (agreed == MPI_SUCCESS && all)
        return MPI_SUCCESS;
    discard(*operation);
    *operation = NULL;
    return agreed;
}

/* Make an operation where all ranks can; else *made stays NULL, on all. */
static int make(const struct coll_call *call, struct coll_comm *cc,
                const struct coll_routine *routine, coll_planner *planner, const double *sums,
                struct coll_operation **made) {
    struct coll_operation *operation = allocate();
    struct coll_plans *plans;
    const int error = coll_comm_plans(call->comm, cc, operation != NULL, &plans);
    if (plans == NULL) {
        if (operation != NULL)
            free(operation->room_for_failure);
        free(operation);
        return error;
    }
    operation->plans = plans;
    operation->call = *call;
    operation->cc = cc;
    memcpy(operation->sums, sums, sizeof operation->sums);
    operation->tag = next_tag(plans);
    *made = operation;
    return fill(made, routine, planner);
}

/*
 * Plan a call where all ranks can; *made is NULL where the MPI library is to serve, on all. Ranks
 * find that out before they make communicators for it, as MPI libraries have only so many.
 */
static int plan(const struct coll_call *call, struct coll_comm *cc,
                const struct coll_routine *routine, coll_planner *planner,
                struct coll_operation **made) {
    double sums[COLL_SUMS];
    int possible;
    *made = NULL;
    if (!coll_may_plan(call, cc, routine, planner))
        return MPI_SUCCESS;
    look_around_once();
    /* A program that is linked statically may lack MPICH's call, on some ranks only. */
    const int unable = PMPIX_Async_start == NULL || !next.is_called || !may_start_within();
    COLL_TRY(coll_sum_up(call, cc, planner, unable, sums, &possible));
    if (!possible)
        return MPI_SUCCESS;
    COLL_TRY(coll_comm_private(call->comm, cc));
    if (cc->kind == COLL_KIND_NATIVE) /* there can be no private communicator */
        return MPI_SUCCESS;
    return make(call, cc, routine, planner, sums, made);
}

/*
 * The routine that serves the blocking call, or the first of its rule's alternatives whose
 * persistent form can be planned: by tuning, none of them is slower than the native routine.
 */
static const struct coll_routine *with_steps(const struct coll_call *call, struct coll_comm *cc,
                                             const struct coll_routine *serving,
                                             const struct coll_rule *rule, coll_planner *planner) {
    const struct coll_routine *native = coll_native[call->collective];
    if (rule == NULL || coll_may_plan(call, cc, serving, planner))
        return serving;
    for (; rule->routine != native; ++rule)
        if (coll_can(rule->routine, &rule->parameters, call, cc) &&
            coll_may_plan(call, cc, rule->routine, planner))
            return rule->routine;
    return serving;
}

int coll_persistent_init(struct coll_call *call, coll_planner *planner, MPI_Request *request,
                         int *error) {
    struct coll_comm *cc = NULL;
    const struct coll_routine *routine;
    const struct coll_rule *rule;
    struct coll_operation *operation = NULL;
    if (coll_off(call->comm) || call->comm == MPI_COMM_NULL || request == NULL)
        return 0;
    const int valid = coll_valid(call, error);
    if (*error != MPI_SUCCESS) /* it has been told */
        return 1;
    if (!valid || coll_views[call->collective]->measure(call) != MPI_SUCCESS ||
        !coll_choose(call, &cc, &routine, &rule, error))
        return 0;
    if (*error == MPI_SUCCESS)
        *error = plan(call, cc, with_steps(call, cc, routine, rule, planner), planner, &operation);
    if (*error != MPI_SUCCESS) {
        PMPI_Comm_call_errhandler(call->comm, *error);
        return 1;
    }
    if (operation == NULL)
        return 0;
    *request = operation->handle;
    enter_in_table(operation);
    return 1;
}

/* Forget an operation whose requests, types and communicator have ended with MPI. */
static void forget(struct coll_operation *operation) {
    for (int i = 0; i < operation->count; ++i)
        operation->steps[i].request = MPI_REQUEST_NULL;
    operation->handle = MPI_REQUEST_NULL;
    operation->own_types[0] = operation->own_types[1] = MPI_DATATYPE_NULL;
    operation->plans->comm = MPI_COMM_NULL;
    operation->plans->handler = MPI_ERRHANDLER_NULL;
    discard(operation);
}

/* While it ends, the MPI library calls poll() until all has ended; unless it cannot end yet. */
void coll_persistent_finalize(int ends) {
    pthread_mutex_lock(&lock);
    is_ending = ends;
    left_before = -1;
    pthread_mutex_unlock(&lock);
}

/* MPI has ended, and with it all requests. Those that were freed while active are in one list. */
void coll_persistent_restart(void) {
    pthread_mutex_lock(&lock);
    abandon_all();
    coll_restart_runs();
    while (abandoned != NULL) {
        struct coll_operation *one = abandoned;
        abandoned = one->next_active;
        if (one->is_freed)
            forget(one);
    }
    for (int slot = 0; slot < SLOTS; ++slot)
        while (slots[slot] != NULL) {
            struct coll_operation *one = slots[slot];
            slots[slot] = one->next;
            forget(one);
        }
    is_hooked = is_ending = 0;
    pthread_mutex_unlock(&lock);
    atomic_store(&live, 0);
}

#else

void coll_persistent_finalize(int ends) {
    (void)ends;
}

void coll_persistent_restart(void) {
}

#endif
