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

/* Datatypes with `ints` integers per element. */
struct layout {
    const char *name;
    int ints;
    int (*create)(MPI_Datatype *type);
};

static int create_int(MPI_Datatype *type) {
    return PMPI_Type_dup(MPI_INT, type);
}

static int create_contiguous(MPI_Datatype *type) {
    return PMPI_Type_contiguous(6, MPI_INT, type);
}

static int create_vector(MPI_Datatype *type) {
    return PMPI_Type_vector(3, 2, 5, MPI_INT, type);
}

/* Six integers out of order and with a gap behind: size tells nothing of the layout. */
static int create_permuted(MPI_Datatype *type) {
    const int lengths[] = {3, 2, 1};
    const int displacements[] = {3, 1, 0};
    MPI_Datatype indexed;
    COLL_TRY(PMPI_Type_indexed(3, lengths, displacements, MPI_INT, &indexed));
    COLL_TRY(PMPI_Type_create_resized(indexed, 0, 8 * (MPI_Aint)sizeof(int), type));
    return PMPI_Type_free(&indexed);
}

/* Out of order without any gap: size and extent are those of plain integers. */
static int create_shuffled(MPI_Datatype *type) {
    const int lengths[] = {3, 3};
    const int displacements[] = {3, 0};
    return PMPI_Type_indexed(2, lengths, displacements, MPI_INT, type);
}

static const struct layout int_layout = {"int", 1, create_int};
static const struct layout contiguous_layout = {"contiguous", 6, create_contiguous};
static const struct layout vector_layout = {"vector with gaps", 6, create_vector};
static const struct layout permuted_layout = {"permuted with a gap", 6, create_permuted};
static const struct layout shuffled_layout = {"permuted without gap", 6, create_shuffled};

/* The two sides of a call; where one side's element is 6 integers, the other's count follows. */
struct pair {
    const struct layout *send;
    const struct layout *recv;
};

static const struct pair pairs[] = {
    {&int_layout, &int_layout},
    {&vector_layout, &vector_layout},
    {&int_layout, &vector_layout},
    {&permuted_layout, &contiguous_layout},
    {&contiguous_layout, &shuffled_layout},
};

enum { PAIRS = sizeof pairs / sizeof pairs[0], BLOCK_INTS = 6 };

/* Blocks of 6 integers in a message. */
static const int quick_blocks[] = {0, 1, 43};
static const int full_blocks[] = {0, 1, 2, 7, 43, 170, 683, 3001};

struct side {
    int count;
    MPI_Datatype type;
    MPI_Aint extent; /* of the whole side: one block per rank, or one message */
};

struct test {
    enum coll_collective collective;
    const struct coll_routine *routine;
    const struct coll_parameters *parameters;
    MPI_Comm comm;
    int rank, size;
    const struct pair *pair;
    int blocks, root, in_place;
};

static int make_side(const struct layout *layout, int blocks, int copies, struct side *side) {
    MPI_Aint lower_bound, extent, true_lower_bound, true_extent;
    COLL_TRY(layout->create(&side->type));
    COLL_TRY(PMPI_Type_commit(&side->type));
    side->count = blocks * BLOCK_INTS / layout->ints;
    COLL_TRY(PMPI_Type_get_extent(side->type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_get_true_extent(side->type, &true_lower_bound, &true_extent));
    side->extent = copies * side->count * extent + true_extent + 64;
    return MPI_SUCCESS;
}

static void fill(char *buffer, MPI_Aint bytes, int seed) {
    unsigned state = (unsigned)seed * 2654435761U + 12345U;
    for (MPI_Aint i = 0; i < bytes; ++i) {
        state = state * 1664525U + 1013904223U;
        buffer[i] = (char)(state >> 24);
    }
}

static int call_native(const struct test *test, const struct side *send, const struct side *recv,
                       const void *sendbuf, void *recvbuf) {
    switch (test->collective) {
    case COLL_ALLTOALL:
        return PMPI_Alltoall(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                             test->comm);
    case COLL_ALLGATHER:
        return PMPI_Allgather(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                              test->comm);
    case COLL_BCAST:
        return PMPI_Bcast(recvbuf, recv->count, recv->type, test->root, test->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

static int call_entry(const struct test *test, const struct side *send, const struct side *recv,
                      const void *sendbuf, void *recvbuf) {
    switch (test->collective) {
    case COLL_ALLTOALL:
        return MPI_Alltoall(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                            test->comm);
    case COLL_ALLGATHER:
        return MPI_Allgather(sendbuf, send->count, send->type, recvbuf, recv->count, recv->type,
                             test->comm);
    case COLL_BCAST:
        return MPI_Bcast(recvbuf, recv->count, recv->type, test->root, test->comm);
    default:
        return MPI_ERR_OTHER;
    }
}

static int call_routine(const struct test *test, const struct side *send, const struct side *recv,
                        const void *sendbuf, void *recvbuf) {
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
        COLL_TRY(coll_call_bcast(&call, recvbuf, recv->count, recv->type, test->root, test->comm));
    return coll_run(test->routine, &call, cc, test->parameters);
}

/* Run both on the same input; *wrong says whether this rank sees a difference. */
static int compare(const struct test *test, const struct side *send, const struct side *recv,
                   char *memory, int *wrong) {
    char *input = memory, *expected = input + send->extent, *actual = expected + recv->extent;
    const void *sendbuf = test->in_place ? MPI_IN_PLACE : input;
    fill(input, send->extent, test->rank);
    fill(expected, recv->extent, 1000 + test->rank);
    memcpy(actual, expected, (size_t)recv->extent);
    COLL_TRY(call_native(test, send, recv, sendbuf, expected));
    COLL_TRY(test->routine == NULL ? call_entry(test, send, recv, sendbuf, actual)
                                   : call_routine(test, send, recv, sendbuf, actual));
    *wrong = memcmp(expected, actual, (size_t)recv->extent) != 0;
    return MPI_SUCCESS;
}

/* The sides of a broadcast may differ from rank to rank, as long as the signature is one. */
static const struct layout *receiving_layout(const struct test *test) {
    if (test->collective == COLL_BCAST && test->rank % 2 == 1)
        return test->pair->send;
    return test->pair->recv;
}

static int run_case(const struct test *test, struct conformance_report *report) {
    struct side send, recv;
    int wrong = 0, any_wrong;
    const int copies = test->collective == COLL_BCAST ? 1 : test->size;
    COLL_TRY(make_side(test->pair->send, test->blocks, copies, &send));
    COLL_TRY(make_side(receiving_layout(test), test->blocks, copies, &recv));
    char *memory = malloc((size_t)(send.extent + 2 * recv.extent));
    int error = memory == NULL ? MPI_ERR_NO_MEM : compare(test, &send, &recv, memory, &wrong);
    free(memory);
    COLL_TRY(PMPI_Type_free(&send.type));
    COLL_TRY(PMPI_Type_free(&recv.type));
    wrong |= error != MPI_SUCCESS;
    COLL_TRY(PMPI_Allreduce(&wrong, &any_wrong, 1, MPI_INT, MPI_LOR, test->comm));
    ++report->cases;
    if (any_wrong && report->wrong++ == 0)
        snprintf(report->first_wrong, sizeof report->first_wrong,
                 "%s on %d ranks, %d bytes, %s to %s, root %d%s",
                 coll_collective_names[test->collective], test->size,
                 test->blocks * BLOCK_INTS * (int)sizeof(int), test->pair->send->name,
                 test->pair->recv->name, test->root, test->in_place ? ", in place" : "");
    return MPI_SUCCESS;
}

static int run_sizes(struct test *test, enum conformance_level level,
                     struct conformance_report *report) {
    const int *blocks = level == CONFORMANCE_FULL ? full_blocks : quick_blocks;
    const int count = level == CONFORMANCE_FULL ? sizeof full_blocks / sizeof *full_blocks
                                                : sizeof quick_blocks / sizeof *quick_blocks;
    for (int i = 0; i < count; ++i) {
        test->blocks = blocks[i];
        COLL_TRY(run_case(test, report));
    }
    return MPI_SUCCESS;
}

/* In place, or from each of several roots. */
static int run_variants(struct test *test, enum conformance_level level,
                        struct conformance_report *report) {
    const int roots[] = {0, test->size - 1, test->size / 2};
    const int variants = test->collective == COLL_BCAST ? 3 : 2;
    for (int i = 0; i < variants; ++i) {
        test->root = test->collective == COLL_BCAST ? roots[i] : 0;
        test->in_place = test->collective != COLL_BCAST && i == 1;
        COLL_TRY(run_sizes(test, level, report));
    }
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
    for (int i = 0; i < PAIRS; ++i) {
        test.pair = &pairs[i];
        COLL_TRY(run_variants(&test, level, report));
    }
    return MPI_SUCCESS;
}
