/*
 * Compares routines with the MPI library's own, byte by byte.
 *
 * A case is a collective, a pair of datatypes with the same signature for the two sides, a
 * count, a root and whether it is in place. The same input goes through PMPI and through the
 * routine; the whole buffers are then compared, the gaps between the elements included.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"

/* Blocks, of BLOCK_BYTES each, in a message. */
static const int quick_blocks[] = {0, 1, 43};
static const int full_blocks[] = {0, 1, 2, 7, 43, 170, 683, 3001};

/* 16 KB: several segments. A quick check sends it once, as it may run on a slow cluster. */
enum { LONG_BLOCKS = 683 };

/* 288 KB: past eager limits and a pipeline's depth. For plain integers and for gaps only; a quick
 * check broadcasts it once, which costs little where p messages of it would cost much. */
enum { LONGEST_BLOCKS = 12007, LONG_PAIRS = 2 };

/* Up to so many ranks a full check broadcasts from all roots and sends the longest messages. */
enum { SMALL = 8 };

enum {
    GUARD = 64,
    CASES_MOST = PAIRS * 3 * (sizeof full_blocks / sizeof *full_blocks + 1) + SMALL
};

/* One call to compare: on which datatypes, how much, from where. */
struct trial {
    const struct pair *pair;
    int blocks, root, in_place;
};

struct side {
    int count;
    MPI_Datatype type;
    MPI_Aint origin; /* of the address that MPI gets, in the whole side */
    MPI_Aint bytes;  /* of the whole side: one block per rank, or one message, and guards */
};

struct test {
    enum coll_collective collective;
    const struct coll_routine *routine;
    const struct coll_parameters *parameters;
    MPI_Comm comm;
    int rank, size;
    int trial_count;
    struct trial trials[CASES_MOST];
    int wrong[CASES_MOST]; /* first on this rank, then on any */
};

static int make_side(const struct layout *layout, int blocks, int copies, struct side *side) {
    MPI_Aint lower_bound, extent, true_lower_bound, true_extent;
    COLL_TRY(layout->create(&side->type));
    COLL_TRY(PMPI_Type_commit(&side->type));
    side->count = blocks * layout->per_block;
    COLL_TRY(PMPI_Type_get_extent(side->type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_get_true_extent(side->type, &true_lower_bound, &true_extent));
    side->origin = GUARD + (true_lower_bound < 0 ? -true_lower_bound : 0);
    side->bytes = side->origin + copies * side->count * extent + true_lower_bound + true_extent;
    side->bytes += GUARD;
    return MPI_SUCCESS;
}

static void fill(char *buffer, MPI_Aint bytes, int seed) {
    unsigned state = (unsigned)seed * 2654435761U + 12345U;
    for (MPI_Aint i = 0; i < bytes; ++i) {
        state = state * 1664525U + 1013904223U;
        buffer[i] = (char)(state >> 24);
    }
}

static int call_native(const struct test *test, const struct trial *trial, const struct side *send,
                       const struct side *recv, const void *sendbuf, void *recvbuf) {
    switch (test->collective) {
    case COLL_ALLTOALL:
        return PMPI_Alltoall(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                             test->comm);
    case COLL_ALLGATHER:
        return PMPI_Allgather(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                              test->comm);
    case COLL_BCAST:
        return PMPI_Bcast(recvbuf, recv->count, recv->type, trial->root, test->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

static int call_entry(const struct test *test, const struct trial *trial, const struct side *send,
                      const struct side *recv, const void *sendbuf, void *recvbuf) {
    switch (test->collective) {
    case COLL_ALLTOALL:
        return MPI_Alltoall(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                            test->comm);
    case COLL_ALLGATHER:
        return MPI_Allgather(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                             test->comm);
    case COLL_BCAST:
        return MPI_Bcast(recvbuf, recv->count, recv->type, trial->root, test->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

static int call_routine(const struct test *test, const struct trial *trial, const struct side *send,
                        const struct side *recv, const void *sendbuf, void *recvbuf) {
    struct coll_call call;
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(test->comm, &cc));
    if (test->collective == COLL_ALLTOALL)
        COLL_TRY(coll_call_alltoall(&call, sendbuf, send->count, send->type, recvbuf, recv->count,
                                    recv->type, test->comm));
    else if (test->collective == COLL_ALLGATHER)
        COLL_TRY(coll_call_allgather(&call, sendbuf, send->count, send->type, recvbuf, recv->count,
                                     recv->type, test->comm));
    else
        COLL_TRY(coll_call_bcast(&call, recvbuf, recv->count, recv->type, trial->root, test->comm));
    return coll_run(test->routine, &call, cc, test->parameters);
}

/* Run both on the same input; *wrong says whether this rank sees a difference. */
static int compare(const struct test *test, const struct trial *trial, const struct side *send,
                   const struct side *recv, char *memory, int *wrong) {
    char *input = memory, *expected = input + send->bytes, *actual = expected + recv->bytes;
    const void *sendbuf = trial->in_place ? MPI_IN_PLACE : input + send->origin;
    fill(input, send->bytes, test->rank);
    fill(expected, recv->bytes, 1000 + test->rank);
    memcpy(actual, expected, (size_t)recv->bytes);
    COLL_TRY(call_native(test, trial, send, recv, sendbuf, expected + recv->origin));
    COLL_TRY((test->routine == NULL ? call_entry : call_routine)(test, trial, send, recv, sendbuf,
                                                                 actual + recv->origin));
    *wrong = memcmp(expected, actual, (size_t)recv->bytes) != 0;
    return MPI_SUCCESS;
}

/* The sides of a broadcast may differ from rank to rank, as long as the signature is one. */
static const struct layout *receiving_layout(const struct test *test, const struct trial *trial) {
    if (test->collective == COLL_BCAST && test->rank % 2 == 1)
        return trial->pair->send;
    return trial->pair->recv;
}

/* Returns an error only where the check itself cannot go on. */
static int run_trial(const struct test *test, const struct trial *trial, int *wrong) {
    struct side send, recv;
    const int copies = test->collective == COLL_BCAST ? 1 : test->size;
    COLL_TRY(make_side(trial->pair->send, trial->blocks, copies, &send));
    COLL_TRY(make_side(receiving_layout(test, trial), trial->blocks, copies, &recv));
    char *memory = malloc((size_t)(send.bytes + 2 * recv.bytes));
    int error = memory == NULL ? MPI_ERR_NO_MEM : compare(test, trial, &send, &recv, memory, wrong);
    free(memory);
    COLL_TRY(PMPI_Type_free(&send.type));
    COLL_TRY(PMPI_Type_free(&recv.type));
    *wrong |= error != MPI_SUCCESS;
    return MPI_SUCCESS;
}

static void add(struct test *test, int pair, int blocks, int root, int in_place) {
    test->trials[test->trial_count++] = (struct trial){&pairs[pair], blocks, root, in_place};
}

static void add_sizes(struct test *test, enum conformance_level level, int pair, int root,
                      int in_place) {
    const int *blocks = level == CONFORMANCE_FULL ? full_blocks : quick_blocks;
    const int count = level == CONFORMANCE_FULL ? sizeof full_blocks / sizeof *full_blocks
                                                : sizeof quick_blocks / sizeof *quick_blocks;
    for (int i = 0; i < count; ++i)
        add(test, pair, blocks[i], root, in_place);
    if (level == CONFORMANCE_FULL && test->size <= SMALL && pair < LONG_PAIRS)
        add(test, pair, LONGEST_BLOCKS, root, in_place);
    if (level == CONFORMANCE_QUICK && pair == 0 && root == 0 && !in_place)
        add(test, pair, test->collective == COLL_BCAST ? LONGEST_BLOCKS : LONG_BLOCKS, root,
            in_place);
}

/* MPICH 4.3's own alltoall in place ends with an error on types such as MPI_DOUBLE_INT. */
static int native_can(enum coll_collective collective, const struct pair *pair) {
    return collective != COLL_ALLTOALL || pair->recv != &pair_layout;
}

/* Each pair of types out of place and in place, or from the first, the last and a middle root. */
static void list_trials(struct test *test, enum conformance_level level) {
    const int roots[] = {0, test->size - 1, test->size / 2};
    for (int pair = 0; pair < PAIRS; ++pair) {
        if (test->collective != COLL_BCAST) {
            add_sizes(test, level, pair, 0, 0);
            if (native_can(test->collective, &pairs[pair]))
                add_sizes(test, level, pair, 0, 1);
            continue;
        }
        for (int i = 0; i < 3 && (i == 0 || test->size > i); ++i)
            add_sizes(test, level, pair, roots[i], 0);
    }
    if (test->collective == COLL_BCAST && level == CONFORMANCE_FULL && test->size <= SMALL)
        for (int root = 0; root < test->size; ++root)
            add(test, 0, full_blocks[1], root, 0);
}

static void describe(const struct test *test, const struct trial *trial,
                     struct conformance_report *report) {
    snprintf(report->first_wrong, sizeof report->first_wrong,
             "%s on %d ranks, %d bytes, %s to %s, root %d%s",
             coll_collective_names[test->collective], test->size, trial->blocks * BLOCK_BYTES,
             trial->pair->send->name, trial->pair->recv->name, trial->root,
             trial->in_place ? ", in place" : "");
}

/* Run the trials one after the other without waiting in between; compare notes at the end. */
static int run(struct test *test, struct conformance_report *report) {
    for (int i = 0; i < test->trial_count; ++i)
        COLL_TRY(run_trial(test, &test->trials[i], &test->wrong[i]));
    COLL_TRY(
        PMPI_Allreduce(MPI_IN_PLACE, test->wrong, test->trial_count, MPI_INT, MPI_LOR, test->comm));
    report->cases = test->trial_count;
    for (int i = 0; i < test->trial_count; ++i)
        if (test->wrong[i] && report->wrong++ == 0)
            describe(test, &test->trials[i], report);
    return MPI_SUCCESS;
}

int conformance_check(enum coll_collective collective, const struct coll_routine *routine,
                      const struct coll_parameters *parameters, MPI_Comm comm,
                      enum conformance_level level, struct conformance_report *report) {
    struct test test = {
        .collective = collective, .routine = routine, .parameters = parameters, .comm = comm};
    *report = (struct conformance_report){0};
    COLL_TRY(PMPI_Comm_rank(comm, &test.rank));
    COLL_TRY(PMPI_Comm_size(comm, &test.size));
    list_trials(&test, level);
    return run(&test, report);
}
