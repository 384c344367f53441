/* From MPI's arguments to the plain view that the routines work on, and back. */
#include <limits.h>
#include <stdlib.h>

#define COLL_UNTRACED /* see events.h */
#include "coll.h"

/* More than INT_MAX where it cannot be counted, or where elements are more than an int counts. */
int coll_packed_bytes(MPI_Count count, MPI_Datatype type, MPI_Aint *bytes) {
    MPI_Count size;
    COLL_TRY(PMPI_Type_size_x(type, &size));
    if (size == 0 || count == 0)
        *bytes = 0;
    else if (size == MPI_UNDEFINED || count > INT_MAX || size > INT_MAX)
        *bytes = (MPI_Aint)INT_MAX + 1;
    else
        *bytes = (MPI_Aint)count * (MPI_Aint)size;
    return MPI_SUCCESS;
}

int coll_total_bytes(const struct coll_blocks *blocks, int size, MPI_Datatype type,
                     MPI_Aint *bytes) {
    MPI_Count total = 0;
    for (int rank = 0; rank < size && total <= INT_MAX; ++rank)
        total += coll_count_of(blocks, rank);
    return coll_packed_bytes(total, type, bytes);
}

/* For collectives whose size is that of the elements received. */
int coll_measure_received(struct coll_call *call) {
    return coll_packed_bytes(call->recv_count, call->recv_type, &call->bytes);
}

int coll_extent(MPI_Count count, MPI_Datatype type, MPI_Aint *bytes) {
    MPI_Aint lower_bound, extent;
    COLL_TRY(PMPI_Type_get_extent(type, &lower_bound, &extent));
    *bytes = (MPI_Aint)count * extent;
    return MPI_SUCCESS;
}

int coll_allocate(MPI_Aint bytes, char **memory) {
    *memory = malloc(bytes > 0 ? (size_t)bytes : 1);
    return *memory == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/*
 * This rank and how many there are; *size is 0 for an intercommunicator. If the communicator has
 * been freed, MPICH calls an error handler. If that is a function of the application that returns,
 * MPICH returns no error, and no answer.
 */
int coll_member(MPI_Comm comm, int *rank, int *size) {
    int inter = -1;
    const struct coll_comm *cc = coll_cached(comm);
    if (cc != NULL) {
        *rank = cc->rank;
        *size = cc->size;
        return MPI_SUCCESS;
    }
    *size = 0;
    COLL_TRY(PMPI_Comm_test_inter(comm, &inter));
    if (inter < 0)
        return MPI_ERR_COMM;
    COLL_TRY(PMPI_Comm_rank(comm, rank));
    return inter ? MPI_SUCCESS : PMPI_Comm_size(comm, size);
}

int coll_nothing_to_finish(const struct coll_call *view, const struct coll_comm *cc) {
    (void)view;
    (void)cc;
    return MPI_SUCCESS;
}

/*
 * Run `routine` on `call` where the private communicator is there: for routines that use others, on
 * calls of their own. After an error the scratch is not freed: sends may still read it.
 */
int coll_run_inside(const struct coll_routine *routine, const struct coll_call *call,
                    const struct coll_comm *cc, const struct coll_parameters *parameters) {
    const struct coll_view *functions = coll_views[call->collective];
    const int dense = routine->constraints & COLL_DENSE;
    struct coll_call view = *call;
    char *scratch[2] = {NULL, NULL};
    int error = functions->prepare(&view, cc, scratch);
    if (error == MPI_SUCCESS && dense)
        error = functions->pack(&view, cc, scratch);
    if (error == MPI_SUCCESS && cc->size > 1)
        error = routine->run(&view, cc, parameters);
    if (error == MPI_SUCCESS)
        error = functions->finish(&view, cc);
    if (error == MPI_SUCCESS && dense)
        error = functions->unpack(call, cc, scratch[1]);
    if (error == MPI_SUCCESS) {
        free(scratch[0]);
        free(scratch[1]);
    }
    return error;
}

/*
 * Run `routine` on `call`. Returns MPI_SUCCESS or an MPI error code; the communicator's error
 * handler is the caller's business. After an error the communicator's state is undefined, as the
 * MPI standard says of all errors: other ranks may wait for messages that were not sent, and the
 * next call may get what was meant for this one. What is promised is that no receive into the
 * application's buffers stays active.
 */
int coll_run(const struct coll_routine *routine, const struct coll_call *call, struct coll_comm *cc,
             const struct coll_parameters *parameters) {
    const struct coll_descriptor *descriptor = &coll_descriptors[call->collective];
    if (routine->constraints & COLL_UNPREPARED)
        return routine->run(call, cc, parameters);
    if (call->bytes == 0 && !descriptor->unsized)
        return MPI_SUCCESS;
    COLL_TRY(coll_comm_private(call->comm, cc));
    if (cc->kind == COLL_KIND_NATIVE)
        return coll_native[call->collective]->run(call, cc, parameters);
    if (descriptor->reduces)
        return coll_run_reduction(routine, call, cc, parameters);
    return coll_run_inside(routine, call, cc, parameters);
}
