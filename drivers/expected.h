/*
 * What the MPI library gives, kept on a communicator for the next routine: a trial has the same
 * input whichever routine is compared.
 */
#ifndef EXPECTED_H
#define EXPECTED_H

#include <string.h>

#include "sides.h"

/* The bytes that a rank keeps at most: those of the results of one collective. */
enum { KEPT_MOST = 32 << 20 };

struct result {
    struct trial trial;
    int error; /* of the MPI library, on this rank */
    char *data;
};

struct expected {
    int shared; /* some ranks of the communicator share memory */
    enum coll_collective collective;
    int count, next; /* next: where to look first */
    long long bytes; /* at least those of the results; the same on all ranks */
    struct result results[CASES_MOST];
};

static int expected_key = MPI_KEYVAL_INVALID;

static inline void forget_results(struct expected *expected) {
    for (int i = 0; i < expected->count; ++i)
        free(expected->results[i].data);
    expected->count = expected->next = 0;
    expected->bytes = 0;
}

static inline int delete_expected(MPI_Comm comm, int key, void *value, void *unused) {
    (void)comm, (void)key, (void)unused;
    forget_results(value);
    free(value);
    return MPI_SUCCESS;
}

/* Whether ranks of the communicator share memory, as the MPI library sees it; alike on all. */
static inline int find_shared(MPI_Comm comm, int *shared) {
    MPI_Comm host;
    int size;
    COLL_TRY(PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    COLL_TRY(PMPI_Comm_size(host, &size));
    COLL_TRY(PMPI_Comm_free(&host));
    *shared = size > 1;
    return PMPI_Allreduce(MPI_IN_PLACE, shared, 1, MPI_INT, MPI_LOR, comm);
}

/* What is kept on a communicator, of this collective only. */
static inline int expected_of(MPI_Comm comm, enum coll_collective collective,
                              struct expected **result) {
    struct expected *expected;
    int found;
    if (expected_key == MPI_KEYVAL_INVALID)
        COLL_TRY(
            PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_expected, &expected_key, NULL));
    COLL_TRY(PMPI_Comm_get_attr(comm, expected_key, &expected, &found));
    if (!found) {
        expected = calloc(1, sizeof *expected);
        if (expected == NULL)
            return MPI_ERR_NO_MEM;
        COLL_TRY(find_shared(comm, &expected->shared));
        COLL_TRY(PMPI_Comm_set_attr(comm, expected_key, expected));
    }
    if (expected->collective != collective)
        forget_results(expected);
    expected->collective = collective;
    *result = expected;
    return MPI_SUCCESS;
}

static inline int is_same_trial(const struct trial *a, const struct trial *b) {
    return a->pair == b->pair && a->operand == b->operand && a->blocks == b->blocks &&
           a->root == b->root && a->in_place == b->in_place && a->sparse == b->sparse &&
           a->by_definition == b->by_definition;
}

/* Most routines have the same trials, one after the other. */
static inline const struct result *find_result(struct expected *expected,
                                               const struct trial *trial) {
    for (int i = 0; i < expected->count; ++i) {
        const int at = (expected->next + i) % expected->count;
        if (is_same_trial(&expected->results[at].trial, trial)) {
            expected->next = at + 1;
            return &expected->results[at];
        }
    }
    return NULL;
}

/*
 * Keep a result, if there is room. Ranks must agree on that, since the MPI library's call takes all
 * of them. So the room counts a message for each rank, a failure is kept like a result, and a rank
 * without memory keeps that as a failure.
 */
static inline void keep_result(struct expected *expected, const struct caller *caller,
                               const struct trial *trial, int error, const char *data,
                               MPI_Aint bytes) {
    const long long most = (long long)trial->blocks * LONGEST * BLOCK_BYTES * caller->size;
    if (expected->count == CASES_MOST || expected->bytes + most > KEPT_MOST)
        return;
    char *copy = malloc((size_t)bytes);
    if (copy != NULL)
        memcpy(copy, data, (size_t)bytes);
    expected->bytes += most;
    expected->results[expected->count++] = (struct result){
        .trial = *trial, .error = copy == NULL ? MPI_ERR_NO_MEM : error, .data = copy};
}

#endif
