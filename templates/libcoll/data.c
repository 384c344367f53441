/* Elements in memory: apart, as blocks, copied; how requests end. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"

/*
 * A type of the same data whose elements keep apart wherever they are put. Those of a type may
 * reach into each other's gaps, or go downwards (an extent below 0): what is right for a whole
 * vector, so that its pieces would overlap if they were put elsewhere.
 */
int coll_spaced_type(MPI_Datatype type, MPI_Datatype *spaced, int *differs) {
    const MPI_Aint alignment = _Alignof(max_align_t);
    MPI_Aint lower_bound, extent, low, bytes;
    COLL_TRY(PMPI_Type_get_extent(type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_get_true_extent(type, &low, &bytes));
    *differs = extent < bytes;
    *spaced = type;
    if (!*differs)
        return MPI_SUCCESS;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    COLL_TRY(PMPI_Type_create_resized(type, 0, bytes, spaced));
    return PMPI_Type_commit(spaced);
}

/* So many elements as one, `stride` bytes from one to the next, which may be less than 0. */
int coll_block_type(int count, MPI_Datatype type, MPI_Aint stride, MPI_Datatype *block) {
    MPI_Datatype contiguous;
    MPI_Aint lower_bound, extent;
    COLL_TRY(PMPI_Type_contiguous(count, type, block));
    COLL_TRY(PMPI_Type_get_extent(*block, &lower_bound, &extent));
    if (extent != stride) {
        contiguous = *block;
        COLL_TRY(PMPI_Type_create_resized(contiguous, 0, stride, block));
        COLL_TRY(PMPI_Type_free(&contiguous));
    }
    return PMPI_Type_commit(block);
}

/* Copy typed data within this process; the two sides have the same signature. */
int coll_copy(const void *from, MPI_Count from_count, MPI_Datatype from_type, void *to,
              MPI_Count to_count, MPI_Datatype to_type, const struct coll_comm *cc) {
    int from_dense, to_dense;
    MPI_Count from_size, to_size;
    COLL_TRY(PMPI_Type_size_x(from_type, &from_size));
    COLL_TRY(PMPI_Type_size_x(to_type, &to_size));
    if (from_size * from_count == 0)
        return MPI_SUCCESS;
    COLL_TRY(coll_is_dense(from_type, &from_dense));
    COLL_TRY(coll_is_dense(to_type, &to_dense));
    if (from_dense && to_dense && from_size * from_count <= to_size * to_count) {
        memmove(to, from, (size_t)(from_size * from_count));
        return MPI_SUCCESS;
    }
    return COLL_SENDRECV(from, from_count, from_type, cc->rank, COLL_TAG_COPY, to, to_count,
                         to_type, cc->rank, COLL_TAG_COPY, cc->comm, MPI_STATUS_IGNORE);
}

/*
 * Give up the requests that are not complete: the receives come first, then the sends. A receive
 * is cancelled and waited for, which is local, so that no message is written any more to where
 * the application may have something else by then. A send only reads, and it may wait for a rank
 * that never receives: it is left to MPI.
 */
void coll_abandon(MPI_Request *requests, int receives, int sends) {
    for (int i = 0; i < receives; ++i) {
        if (requests[i] != MPI_REQUEST_NULL && PMPI_Cancel(&requests[i]) == MPI_SUCCESS)
            PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    for (int i = receives; i < receives + sends; ++i)
        if (requests[i] != MPI_REQUEST_NULL)
            PMPI_Request_free(&requests[i]);
}

/*
 * Wait for the requests, or give them up if posting them ended in `error`. Returns that error or
 * the first one of a request, of which MPI_Waitall would say only that there is one; the other
 * requests are completed all the same.
 */
int coll_complete(MPI_Request *requests, int receives, int sends, int error) {
    const int count = error == MPI_SUCCESS ? receives + sends : 0;
    for (int i = 0; i < count; ++i) {
        const int one = PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        error = error == MPI_SUCCESS ? one : error;
    }
    if (error != MPI_SUCCESS)
        coll_abandon(requests, receives, sends);
    return error;
}
