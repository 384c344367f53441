/*
 * Compares routines with the MPI library's own, byte by byte.
 *
 * The same input goes through PMPI, once, and through each routine; the whole buffers are then
 * compared, the gaps between the elements included. A collective's descriptor (coll.h) says which
 * calls it allows.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls.h"
#include "definition.h"
#include "expected.h"

struct test {
    struct caller caller;
    enum coll_collective collective;
    const struct coll_routine *routine;
    const struct coll_parameters *parameters;
    struct expected *expected;
    struct trials trials;
    int wrong[CASES_MOST]; /* first on this rank, then on any */
    int left_out;          /* the routine does not do messages of that size */
};

/* The arguments of a call; empty if a rank's argument does not count. */
static struct coll_call make_call(const struct test *test, const struct trial *trial,
                                  const struct side *send, const struct side *recv, MPI_Op op,
                                  char *sendbuf, char *recvbuf) {
    const struct coll_descriptor *descriptor = test->caller.descriptor;
    const int at_root = !descriptor->rooted || test->caller.rank == trial->root;
    const int times = descriptor->uneven && descriptor->send == COLL_ONE
                          ? weight(trial, test->caller.rank, 0, 0)
                          : 1;
    struct coll_call call = {
        .collective = test->collective,
        .comm = test->caller.comm,
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .send_count = send->count * times,
        .send_type = send->type,
        .recv_count = recv->count,
        .recv_type = recv->type,
        .send_blocks = {.counts = send->counts, .displacements = send->displacements},
        .recv_blocks = {.counts = recv->counts, .displacements = recv->displacements},
        .op = op,
        .root = trial->root};
    if (coll_is_from_root(descriptor) && !at_root)
        call.sendbuf = NULL;
    if (coll_is_to_root(descriptor) && !at_root)
        call.recvbuf = NULL;
    if (trial->in_place && at_root && descriptor->in_place == COLL_RECVBUF)
        call.recvbuf = MPI_IN_PLACE;
    if (trial->in_place && at_root && descriptor->in_place == COLL_SENDBUF)
        call.sendbuf = MPI_IN_PLACE;
    return call;
}

/* The MPI_ function; `collectives` has them in the order of the constants of coll.h. */
static int call_entry(const struct coll_call *call) {
    const struct arguments arguments = {
        .send = call->sendbuf,
        .send_count = call->send_count,
        .send_type = call->send_type,
        .recv = call->recvbuf,
        .recv_count = call->recv_count,
        .recv_type = call->recv_type,
        .op = call->op,
        .root = call->root,
        .comm = call->comm,
        .send_counts = call->send_blocks.counts,
        .send_displacements = call->send_blocks.displacements,
        .recv_counts = call->recv_blocks.counts,
        .recv_displacements = call->recv_blocks.displacements,
    };
    return collectives[call->collective].call(&arguments, 0);
}

static int call_routine(struct test *test, struct coll_call *call) {
    struct coll_comm *cc;
    if (test->routine == NULL)
        return call_entry(call);
    COLL_TRY(coll_comm_get(call->comm, &cc));
    COLL_TRY(coll_views[test->collective]->measure(call));
    if (call->bytes > 0 && !(coll_applicable(test->routine, cc, call->bytes) &&
                             coll_parts_can(test->routine, test->parameters, call, cc))) {
        ++test->left_out;
        return coll_native[test->collective]->run(call, NULL, NULL);
    }
    return coll_run(test->routine, call, cc, test->parameters);
}

/*
 * Make the MPI library's own call, or take what it gave before. `expected` and `actual` both have
 * what the receiving side has before the call.
 */
static int expect(const struct test *test, const struct trial *trial, const struct side *send,
                  const struct side *recv, MPI_Op op, char *input, char *expected, char *actual) {
    const struct caller *caller = &test->caller;
    const struct result *known = find_result(test->expected, trial);
    if (known != NULL) {
        if (known->error == MPI_SUCCESS)
            memcpy(expected, known->data, (size_t)recv->bytes);
        return known->error;
    }
    const struct coll_call call =
        make_call(test, trial, send, recv, op, input + send->origin, expected + recv->origin);
    const int error = trial->by_definition
                          ? by_definition(caller, &call, send, recv, actual + recv->origin)
                          : coll_native[test->collective]->run(&call, NULL, NULL);
    keep_result(test->expected, caller, trial, error, expected, recv->bytes);
    return error;
}

/* Run both on the same input; *wrong says whether this rank sees a difference. */
static int compare(struct test *test, const struct trial *trial, const struct side *send,
                   const struct side *recv, MPI_Op op, char *memory, int *wrong) {
    const struct caller *caller = &test->caller;
    char *input = memory, *expected = input + send->bytes, *actual = expected + recv->bytes;
    fill(trial, send, input, caller->rank, caller->rank);
    fill(trial, recv, expected, 1000 + caller->rank, caller->rank);
    memcpy(actual, expected, (size_t)recv->bytes);
    COLL_TRY(expect(test, trial, send, recv, op, input, expected, actual));
    struct coll_call call =
        make_call(test, trial, send, recv, op, input + send->origin, actual + recv->origin);
    COLL_TRY(call_routine(test, &call));
    if (trial->operand != NULL) {
        blank_padding(trial->operand->number, expected, (size_t)recv->bytes);
        blank_padding(trial->operand->number, actual, (size_t)recv->bytes);
    }
    *wrong = memcmp(expected, actual, (size_t)defined_bytes(caller, trial, recv)) != 0;
    return MPI_SUCCESS;
}

/* Compare, with the operation of the trial if it has one. */
static int compare_with(struct test *test, const struct trial *trial, const struct side *send,
                        const struct side *recv, char *memory, int *wrong) {
    const struct operand *operand = trial->operand;
    if (operand == NULL || operand->function == NULL)
        return compare(test, trial, send, recv, operand == NULL ? MPI_OP_NULL : operand->op, memory,
                       wrong);
    MPI_Op op;
    current_shape = operand->shapes[test->caller.rank % 2];
    COLL_TRY(PMPI_Op_create(operand->function, operand->commutes, &op));
    const int error = compare(test, trial, send, recv, op, memory, wrong);
    COLL_TRY(PMPI_Op_free(&op));
    return error;
}

/* Returns an error only if the check itself cannot go on. */
static int run_trial(struct test *test, const struct trial *trial, int *wrong) {
    struct side send, recv;
    COLL_TRY(make_side(&test->caller, trial, 1, &send));
    COLL_TRY(make_side(&test->caller, trial, 0, &recv));
    char *memory = malloc((size_t)(send.bytes + 2 * recv.bytes));
    int error = MPI_ERR_NO_MEM;
    if (memory != NULL)
        error = compare_with(test, trial, &send, &recv, memory, wrong);
    free(memory);
    COLL_TRY(free_side(&send));
    COLL_TRY(free_side(&recv));
    *wrong |= error != MPI_SUCCESS;
    return MPI_SUCCESS;
}

static void describe(const struct test *test, const struct trial *trial,
                     struct conformance_report *report) {
    const struct pair *pair = trial->pair;
    snprintf(report->first_wrong, sizeof report->first_wrong,
             "%s on %d ranks, %d of %s%s%s, root %d%s%s", coll_collective_names[test->collective],
             test->caller.size,
             trial->blocks * (pair == NULL ? trial->operand->per_block : pair->send->per_block),
             pair == NULL ? trial->operand->name : pair->send->name, pair == NULL ? "" : " to ",
             pair == NULL ? "" : pair->recv->name, trial->root, trial->in_place ? ", in place" : "",
             trial->sparse ? ", sparse" : "");
}

/*
 * Delays: the longest sleep of a rank before a call, in microseconds, and the number of calls in a
 * row that are delayed in one way (see sleep_before).
 */
static int delay_most;
enum { CALLS_ALIKE = 16 };

void conformance_delay(int microseconds) {
    delay_most = microseconds;
}

/* A number that looks random, below `most` (the finaliser of Appleby's MurmurHash3). */
static unsigned scatter(unsigned number, unsigned most) {
    number = (number ^ number >> 16) * 0x85ebca6bU;
    number = (number ^ number >> 13) * 0xc2b2ae35U;
    return (number ^ number >> 16) % most;
}

/*
 * For CALLS_ALIKE calls, each rank sleeps for a random time. For the next CALLS_ALIKE calls, only
 * one rank sleeps, always the same one and for the longest time. And so on, with another rank.
 */
static void sleep_before(const struct caller *caller, int number) {
    const int turn = number / CALLS_ALIKE, alone = turn % 2 == 1;
    if (delay_most == 0 || (alone && caller->rank != turn % caller->size))
        return;
    const unsigned draw = (unsigned)number * 1000003U + (unsigned)caller->rank;
    const unsigned most = (unsigned)delay_most + 1, time = alone ? most - 1 : scatter(draw, most);
    const struct timespec pause = {.tv_sec = time / 1000000, .tv_nsec = time % 1000000 * 1000L};
    nanosleep(&pause, NULL);
}

/* Run the trials one after the other without waiting in between; combine the results at the end. */
static int run(struct test *test, struct conformance_report *report) {
    const int count = test->trials.count;
    for (int i = 0; i < count; ++i) {
        sleep_before(&test->caller, i);
        COLL_TRY(run_trial(test, &test->trials.list[i], &test->wrong[i]));
    }
    COLL_TRY(PMPI_Allreduce(MPI_IN_PLACE, test->wrong, count, MPI_INT, MPI_LOR, test->caller.comm));
    report->cases = count - test->left_out;
    for (int i = 0; i < count; ++i)
        if (test->wrong[i] && report->wrong++ == 0)
            describe(test, &test->trials.list[i], report);
    return MPI_SUCCESS;
}

static int check(enum coll_collective collective, const struct coll_routine *routine,
                 const struct coll_parameters *parameters, MPI_Comm comm,
                 enum conformance_level level, int times, struct conformance_report *report) {
    struct test test = {.caller = {.descriptor = &coll_descriptors[collective], .comm = comm},
                        .collective = collective,
                        .routine = routine,
                        .parameters = parameters};
    struct caller *caller = &test.caller;
    *report = (struct conformance_report){0};
    COLL_TRY(PMPI_Comm_rank(comm, &caller->rank));
    COLL_TRY(PMPI_Comm_size(comm, &caller->size));
    COLL_TRY(expected_of(comm, collective, &test.expected));
    const struct series series = {
        .descriptor = caller->descriptor,
        .level = level,
        .size = caller->size,
        .reorders = routine != NULL && coll_reorders(routine, parameters),
        .native = routine == NULL || (routine->constraints & COLL_UNPREPARED) != 0,
        .shared = test.expected->shared,
        .turn = caller->size + (routine == NULL ? 0 : (int)(routine - coll_routines)),
    };
    list_trials(&test.trials, &series);
    leave_out(&test.trials, times);
    return run(&test, report);
}

int conformance_check(enum coll_collective collective, const struct coll_routine *routine,
                      const struct coll_parameters *parameters, MPI_Comm comm,
                      enum conformance_level level, struct conformance_report *report) {
    return check(collective, routine, parameters, comm, level, 0, report);
}

int conformance_check_again(enum coll_collective collective, const struct coll_routine *routine,
                            const struct coll_parameters *parameters, MPI_Comm comm, int times,
                            struct conformance_report *report) {
    return check(collective, routine, parameters, comm, CONFORMANCE_QUICK, times, report);
}
