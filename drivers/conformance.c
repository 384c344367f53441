/*
 * Compares routines with the MPI library's own, byte by byte.
 *
 * The same input goes through PMPI and through the routine; the whole buffers are then compared,
 * the gaps between the elements included. What calls a collective allows is in its case_*.c.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trials.h"

/* Around the data, and the alignment of whole sides. */
enum { GUARD = 64 };

/* Where blocks differ in length, the longest is LONGEST times as long as the trial says. */
enum { LONGEST = 2 };

struct side {
    int count; /* elements of a block */
    MPI_Datatype type;
    int created;          /* the type is ours to free */
    MPI_Aint origin;      /* of the address that MPI gets, in the whole side */
    MPI_Aint bytes;       /* of the whole side: one block per rank, or one message, and guards */
    int *counts, *places; /* of the blocks, where they differ */
};

struct test {
    enum coll_collective collective;
    const struct coll_case *kind;
    const struct coll_routine *routine;
    const struct coll_parameters *parameters;
    MPI_Comm comm;
    int rank, size;
    struct trials trials;
    int wrong[CASES_MOST]; /* first on this rank, then on any */
};

static int make_type(const struct operand *operand, const struct layout *layout, int blocks,
                     struct side *side) {
    side->created = operand == NULL || operand->layout != NULL;
    side->count = blocks * (operand != NULL ? operand->per_block : layout->per_block);
    if (!side->created) {
        side->type = operand->type;
        return MPI_SUCCESS;
    }
    COLL_TRY((operand != NULL ? operand->layout : layout)->create(&side->type));
    return PMPI_Type_commit(&side->type);
}

/* Room for so many elements on both sides of the address. */
static int measure_side(MPI_Aint elements, struct side *side) {
    MPI_Aint lower_bound, extent, true_lower_bound, true_extent;
    COLL_TRY(PMPI_Type_get_extent(side->type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_get_true_extent(side->type, &true_lower_bound, &true_extent));
    side->origin = GUARD + (true_lower_bound < 0 ? -true_lower_bound : 0);
    side->bytes = side->origin + elements * extent + true_lower_bound + true_extent + GUARD;
    side->bytes += GUARD - side->bytes % GUARD;
    return MPI_SUCCESS;
}

/* Blocks of 0 to LONGEST times `count` elements, depending on who sends to whom. */
static int weight(int from, int to) {
    return (from + 2 * to) % (LONGEST + 1);
}

/*
 * Lengths and places of a side's blocks, the last one first and with gaps in between. Where all
 * ranks send to one, rank 0 gets something: MPICH 4.3's reduce_scatter in place fails without.
 */
static int make_blocks(const struct test *test, const struct trial *trial, int sends,
                       struct side *side) {
    const int one_to = test->kind->send != CASE_ALL, one_from = test->kind->recv != CASE_ALL;
    side->counts = calloc(2 * (size_t)test->size, sizeof *side->counts);
    if (side->counts == NULL)
        return MPI_ERR_NO_MEM;
    side->places = side->counts + test->size;
    for (int i = 0; i < test->size; ++i) {
        const int from = one_from ? 1 : sends ? test->rank : i;
        const int to = one_to ? 0 : sends || one_from ? i : test->rank;
        /* In place two ranks swap blocks of one length. */
        const int swapped = trial->in_place && !one_to && !one_from && from > to;
        side->counts[i] = side->count * (swapped ? weight(to, from) : weight(from, to));
        side->places[i] = side->count * LONGEST * (test->size - 1 - i);
    }
    return MPI_SUCCESS;
}

static int make_side(const struct test *test, const struct trial *trial, int sends,
                     const struct layout *layout, struct side *side) {
    const enum case_side holds = sends ? test->kind->send : test->kind->recv;
    const int all = holds == CASE_ALL || (trial->in_place && test->kind->send == CASE_ALL);
    *side = (struct side){0};
    COLL_TRY(make_type(trial->operand, layout, trial->blocks, side));
    if (test->kind->uneven)
        COLL_TRY(make_blocks(test, trial, sends, side));
    return measure_side(
        (MPI_Aint)(all ? test->size : 1) * (test->kind->uneven ? LONGEST : 1) * side->count, side);
}

static int free_side(struct side *side) {
    free(side->counts);
    return side->created ? PMPI_Type_free(&side->type) : MPI_SUCCESS;
}

/* Any bytes or, to be reduced, numbers so small that results are exact. */
static void fill(const struct trial *trial, char *buffer, MPI_Aint bytes, int seed) {
    unsigned state = (unsigned)seed * 2654435761U + 12345U;
    const struct operand *operand = trial->operand;
    const MPI_Aint step = operand == NULL ? 1 : operand->real ? sizeof(double) : sizeof(int);
    for (MPI_Aint i = 0; i < bytes; i += step) {
        state = state * 1664525U + 1013904223U;
        const int small = (int)((state >> 20) % 1000);
        const double real = small;
        if (operand == NULL)
            buffer[i] = (char)(state >> 24);
        else if (operand->real)
            memcpy(buffer + i, &real, sizeof real);
        else
            memcpy(buffer + i, &small, sizeof small);
    }
}

/* The arguments of a call, with nothing where a rank's argument does not count. */
static struct coll_call make_call(const struct test *test, const struct trial *trial,
                                  const struct side *send, const struct side *recv, MPI_Op op,
                                  char *sendbuf, char *recvbuf) {
    const struct coll_case *kind = test->kind;
    const int at_root = kind->rooted && test->rank == trial->root;
    const int times = kind->uneven && kind->send == CASE_ONE ? weight(test->rank, 0) : 1;
    struct coll_call call = {.collective = test->collective,
                             .comm = test->comm,
                             .sendbuf = sendbuf,
                             .recvbuf = recvbuf,
                             .send_count = send->count * times,
                             .send_type = send->type,
                             .recv_count = recv->count,
                             .recv_type = recv->type,
                             .send_blocks = {.counts = send->counts, .displacements = send->places},
                             .recv_blocks = {.counts = recv->counts, .displacements = recv->places},
                             .op = op,
                             .root = trial->root};
    if (kind->rooted && !at_root && kind->send == CASE_ALL)
        call.sendbuf = NULL;
    if (kind->rooted && !at_root && kind->send == CASE_ONE)
        call.recvbuf = NULL;
    if (trial->in_place && (at_root || !kind->rooted)) {
        if (kind->in_place == CASE_RECV_AT_ROOT)
            call.recvbuf = MPI_IN_PLACE;
        else
            call.sendbuf = MPI_IN_PLACE;
    }
    return call;
}

static int call_routine(const struct test *test, struct coll_call *call) {
    struct coll_comm *cc;
    if (test->routine == NULL)
        return test->kind->entry(call);
    COLL_TRY(coll_comm_get(test->comm, &cc));
    COLL_TRY(coll_views[test->collective]->measure(call));
    return coll_run(test->routine, call, cc, test->parameters);
}

/* Run both on the same input; *wrong says whether this rank sees a difference. */
static int compare(const struct test *test, const struct trial *trial, const struct side *send,
                   const struct side *recv, MPI_Op op, char *memory, int *wrong) {
    char *input = memory, *expected = input + send->bytes, *actual = expected + recv->bytes;
    fill(trial, input, send->bytes, test->rank);
    fill(trial, expected, recv->bytes, 1000 + test->rank);
    memcpy(actual, expected, (size_t)recv->bytes);
    struct coll_call call =
        make_call(test, trial, send, recv, op, input + send->origin, expected + recv->origin);
    COLL_TRY(coll_native[test->collective]->run(&call, NULL, NULL));
    call = make_call(test, trial, send, recv, op, input + send->origin, actual + recv->origin);
    COLL_TRY(call_routine(test, &call));
    *wrong = memcmp(expected, actual, (size_t)recv->bytes) != 0;
    return MPI_SUCCESS;
}

/* With the operation of the trial, if it has one. */
static int compare_with(const struct test *test, const struct trial *trial, const struct side *send,
                        const struct side *recv, char *memory, int *wrong) {
    const struct operand *operand = trial->operand;
    if (operand == NULL || operand->function == NULL)
        return compare(test, trial, send, recv, operand == NULL ? MPI_OP_NULL : operand->op, memory,
                       wrong);
    MPI_Op op;
    current_operand = operand;
    COLL_TRY(PMPI_Op_create(operand->function, operand->commutes, &op));
    const int error = compare(test, trial, send, recv, op, memory, wrong);
    COLL_TRY(PMPI_Op_free(&op));
    return error;
}

/* The sides of a broadcast may differ from rank to rank, as long as the signature is one. */
static const struct layout *layout_of(const struct test *test, const struct trial *trial,
                                      int sends) {
    if (trial->pair == NULL)
        return NULL;
    if (test->kind->send == CASE_NOTHING && test->rank % 2 == 1)
        sends = 1;
    return sends ? trial->pair->send : trial->pair->recv;
}

/* Returns an error only where the check itself cannot go on. */
static int run_trial(const struct test *test, const struct trial *trial, int *wrong) {
    struct side send, recv;
    COLL_TRY(make_side(test, trial, 1, layout_of(test, trial, 1), &send));
    COLL_TRY(make_side(test, trial, 0, layout_of(test, trial, 0), &recv));
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
             "%s on %d ranks, %d bytes, %s%s%s, root %d%s", coll_collective_names[test->collective],
             test->size, trial->blocks * BLOCK_BYTES,
             pair == NULL ? trial->operand->name : pair->send->name, pair == NULL ? "" : " to ",
             pair == NULL ? "" : pair->recv->name, trial->root,
             trial->in_place ? ", in place" : "");
}

/* Run the trials one after the other without waiting in between; compare notes at the end. */
static int run(struct test *test, struct conformance_report *report) {
    const int count = test->trials.count;
    for (int i = 0; i < count; ++i)
        COLL_TRY(run_trial(test, &test->trials.list[i], &test->wrong[i]));
    COLL_TRY(PMPI_Allreduce(MPI_IN_PLACE, test->wrong, count, MPI_INT, MPI_LOR, test->comm));
    report->cases = count;
    for (int i = 0; i < count; ++i)
        if (test->wrong[i] && report->wrong++ == 0)
            describe(test, &test->trials.list[i], report);
    return MPI_SUCCESS;
}

int conformance_check(enum coll_collective collective, const struct coll_routine *routine,
                      const struct coll_parameters *parameters, MPI_Comm comm,
                      enum conformance_level level, struct conformance_report *report) {
    struct test test = {.collective = collective,
                        .kind = coll_cases[collective],
                        .routine = routine,
                        .parameters = parameters,
                        .comm = comm};
    *report = (struct conformance_report){0};
    COLL_TRY(PMPI_Comm_rank(comm, &test.rank));
    COLL_TRY(PMPI_Comm_size(comm, &test.size));
    const int reorders = routine != NULL && (routine->constraints & COLL_COMMUTATIVE) != 0;
    list_trials(&test.trials, test.kind, reorders, level, test.size);
    return run(&test, report);
}
