/* Elements in memory: apart, as blocks, copied; how requests end. */
#include <limits.h>
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

/* One side of a copy: elements of a type, or plain bytes if the type is dense. */
struct copied {
    char *data;
    MPI_Datatype type;
    MPI_Count size; /* bytes of data of an element */
    MPI_Aint stride;
    int dense;
};

static int copied_of(const void *data, MPI_Datatype type, struct copied *side) {
    side->data = (char *)data;
    side->type = type;
    COLL_TRY(PMPI_Type_size_x(type, &side->size));
    COLL_TRY(coll_extent(1, type, &side->stride));
    return coll_is_dense(type, &side->dense);
}

/* Where the element begins that has so many bytes of data before it. */
static char *after_bytes(const struct copied *side, MPI_Count bytes) {
    return side->data +
           (side->dense ? (MPI_Aint)bytes : (MPI_Aint)(bytes / side->size) * side->stride);
}

/*
 * The least number of bytes that whole elements of both sides have; of dense ones any number is.
 * All that is copied is a multiple of it, so unlike the product of both sizes it cannot overflow.
 */
static MPI_Count whole_elements(const struct copied *from, const struct copied *to) {
    const MPI_Count one = from->dense ? 1 : from->size, other = to->dense ? 1 : to->size;
    MPI_Count divisor = one, next = other;
    while (next > 0) {
        const MPI_Count rest = divisor % next;
        divisor = next;
        next = rest;
    }
    return one / divisor * other;
}

/* Copy so many bytes of data, `piece` at a time: through `room` unless one side is dense. */
static int copy_pieces(const struct copied *from, const struct copied *to, MPI_Count all,
                       MPI_Count piece, char *room, MPI_Comm comm) {
    for (MPI_Count done = 0; done < all; done += piece) {
        const int bytes = (int)(all - done < piece ? all - done : piece);
        char *source = after_bytes(from, done), *target = after_bytes(to, done);
        char *packed = from->dense ? source : to->dense ? target : room;
        int position = 0;
        if (!from->dense)
            COLL_TRY(PMPI_Pack(source, (int)(bytes / from->size), from->type, packed, bytes,
                               &position, comm));
        position = 0;
        if (!to->dense)
            COLL_TRY(PMPI_Unpack(packed, bytes, &position, target, (int)(bytes / to->size),
                                 to->type, comm));
    }
    return MPI_SUCCESS;
}

/* The most bytes that are packed at a time, unless elements are longer. */
enum { PIECE = 64 * 1024 };

static int copy_by_message(const void *from, MPI_Count from_count, MPI_Datatype from_type, void *to,
                           MPI_Count to_count, MPI_Datatype to_type, const struct coll_comm *cc) {
    return COLL_SENDRECV(from, from_count, from_type, cc->rank, COLL_TAG_COPY, to, to_count,
                         to_type, cc->rank, COLL_TAG_COPY, cc->comm, MPI_STATUS_IGNORE);
}

/*
 * Copy typed data within this process; the two sides have the same signature. A message to oneself
 * would do, but MPICH 4.3.2 refuses one of 16 KiB or more whose receiver has another type with
 * gaps than its sender, such as MPI_DOUBLE_INT.
 */
int coll_copy(const void *from, MPI_Count from_count, MPI_Datatype from_type, void *to,
              MPI_Count to_count, MPI_Datatype to_type, const struct coll_comm *cc) {
    struct copied source, target;
    COLL_TRY(copied_of(from, from_type, &source));
    COLL_TRY(copied_of(to, to_type, &target));
    const MPI_Count all = source.size * from_count, room = target.size * to_count;
    if (all == 0)
        return MPI_SUCCESS;
    if (source.dense && target.dense && all <= room) {
        memmove(to, from, (size_t)all);
        return MPI_SUCCESS;
    }
    /* If the call is wrong, MPI reports the mistake. An element of the target may have no data. */
    if (from_type == to_type || all > room || (!target.dense && all % target.size != 0))
        return copy_by_message(from, from_count, from_type, to, to_count, to_type, cc);
    const MPI_Count whole = whole_elements(&source, &target);
    const MPI_Count wanted = whole > PIECE ? whole : PIECE / whole * whole;
    const MPI_Count piece = wanted < all ? wanted : all;
    if (piece > INT_MAX) /* Pack and Unpack count by int */
        return copy_by_message(from, from_count, from_type, to, to_count, to_type, cc);
    if (source.dense || target.dense)
        return copy_pieces(&source, &target, all, piece, NULL, cc->comm);
    char *packed = malloc((size_t)piece);
    if (packed == NULL)
        return MPI_ERR_NO_MEM;
    const int error = copy_pieces(&source, &target, all, piece, packed, cc->comm);
    free(packed);
    return error;
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
