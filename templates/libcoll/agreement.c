/*
 * What the ranks of an alltoallv tell each other of their counts: one allreduce. The numbers are
 * whole, and sums stay at the most that they can hold. So the order in which ranks are combined
 * does not matter, and all of them get the same.
 */
#include <pthread.h>

#include "dispatch.h"

enum { NUMBERS = sizeof(struct coll_counts_told) / sizeof(uint64_t) };

static MPI_Datatype told_type = MPI_DATATYPE_NULL;
static MPI_Op combine_op = MPI_OP_NULL;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void combine(void *in, void *inout, int *count, MPI_Datatype *type) {
    const struct coll_counts_told *theirs = in;
    struct coll_counts_told *ours = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        const uint64_t room = UINT64_MAX - ours[i].bytes;
        ours[i].fitting &= theirs[i].fitting;
        ours[i].bytes += theirs[i].bytes < room ? theirs[i].bytes : room;
        ours[i].largest = theirs[i].largest > ours[i].largest ? theirs[i].largest : ours[i].largest;
    }
}

static int make_operation(void) {
    int error = MPI_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (told_type == MPI_DATATYPE_NULL) {
        error = PMPI_Type_contiguous(NUMBERS, MPI_UINT64_T, &told_type);
        if (error == MPI_SUCCESS && (error = PMPI_Type_commit(&told_type)) != MPI_SUCCESS)
            PMPI_Type_free(&told_type); /* the next call makes it anew */
    }
    if (error == MPI_SUCCESS && combine_op == MPI_OP_NULL)
        error = PMPI_Op_create(combine, 1, &combine_op);
    pthread_mutex_unlock(&mutex);
    return error;
}

int coll_agree_on_counts(const struct coll_comm *cc, struct coll_counts_told *told) {
    COLL_TRY(make_operation());
    return PMPI_Allreduce(MPI_IN_PLACE, told, 1, told_type, combine_op, cc->comm);
}

/* No communicators stay. */
void coll_agreement_finalize(void) {
    pthread_mutex_lock(&mutex);
    if (combine_op != MPI_OP_NULL)
        PMPI_Op_free(&combine_op);
    if (told_type != MPI_DATATYPE_NULL)
        PMPI_Type_free(&told_type);
    pthread_mutex_unlock(&mutex);
}

/* MPI has ended, and what it knew with it. */
void coll_agreement_restart(void) {
    pthread_mutex_lock(&mutex);
    combine_op = MPI_OP_NULL;
    told_type = MPI_DATATYPE_NULL;
    pthread_mutex_unlock(&mutex);
}
