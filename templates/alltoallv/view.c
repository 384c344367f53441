/* The alltoall with blocks of different lengths, as routines see it. */
#include <math.h>
#include <stdlib.h>

#include "coll.h"

/* A rank knows its own blocks only, so one rule serves all calls. */
static int measure(struct coll_call *call) {
    call->bytes = 0;
    return MPI_SUCCESS;
}

/*
 * In place, which all ranks are or none, a rank sends what its receive buffer holds, as much to
 * another as it gets from it: send from a packed copy. The elements may be far apart, and between
 * each other, as are the columns of a matrix: a copy of them as they are would need far more memory
 * than the data. The scratch has the blocks' lengths and displacements, then the blocks.
 */
static int send_copy(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    const size_t p = (size_t)cc->size;
    const MPI_Aint room = (MPI_Aint)(p * (sizeof(MPI_Count) + sizeof(MPI_Aint)));
    MPI_Aint together = 0;
    MPI_Count size;
    COLL_TRY(PMPI_Type_size_x(view->recv_type, &size));
    for (int rank = 0; rank < cc->size; ++rank)
        together += (MPI_Aint)(coll_recv_count(view, rank) * size);
    COLL_TRY(coll_allocate(room + together, scratch));
    MPI_Count *bytes = (void *)*scratch;
    MPI_Aint *displacements = (void *)(bytes + p), before = 0;
    char *packed = *scratch + room;
    for (int rank = 0; rank < cc->size; ++rank) {
        const MPI_Count count = coll_recv_count(view, rank);
        bytes[rank] = count * size;
        displacements[rank] = before;
        if (rank != cc->rank)
            COLL_TRY(coll_copy(coll_recv_block(view, rank), count, view->recv_type, packed + before,
                               bytes[rank], MPI_PACKED, cc));
        before += (MPI_Aint)bytes[rank];
    }
    view->send = packed;
    view->send_type = MPI_PACKED;
    view->send_stride = 1;
    view->send_blocks =
        (struct coll_blocks){.large_counts = bytes, .large_displacements = displacements};
    return MPI_SUCCESS;
}

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    view->recv = view->recvbuf;
    COLL_TRY(coll_extent(1, view->recv_type, &view->recv_stride));
    if (view->sendbuf == MPI_IN_PLACE)
        return send_copy(view, cc, scratch);
    view->send = view->sendbuf;
    COLL_TRY(coll_extent(1, view->send_type, &view->send_stride));
    return coll_copy(coll_send_block(view, cc->rank), coll_send_count(view, cc->rank),
                     view->send_type, coll_recv_block(view, cc->rank),
                     coll_recv_count(view, cc->rank), view->recv_type, cc);
}

/* One side of a call: blocks with their lengths and displacements in bytes. */
struct side {
    MPI_Count *bytes;        /* [rank] */
    MPI_Aint *displacements; /* [rank] */
    MPI_Aint together;       /* bytes of all blocks */
};

/* Where blocks are in a buffer of plain bytes, or where they will be, one after the other. */
static int count_bytes(const struct coll_blocks *blocks, MPI_Datatype type, MPI_Aint stride,
                       int dense, int p, struct side *side) {
    MPI_Count size;
    COLL_TRY(PMPI_Type_size_x(type, &size));
    side->together = 0;
    for (int rank = 0; rank < p; ++rank) {
        side->bytes[rank] = coll_count_of(blocks, rank) * size;
        side->displacements[rank] =
            dense ? coll_displacement_of(blocks, rank) * stride : side->together;
        side->together += (MPI_Aint)side->bytes[rank];
    }
    return MPI_SUCCESS;
}

/* Pack what goes to the others. In place, it is packed already. */
static int pack_sent(struct coll_call *view, const struct coll_comm *cc, const struct side *side,
                     char **scratch) {
    char *packed;
    COLL_TRY(coll_allocate(side->together, &packed));
    for (int rank = 0; rank < cc->size; ++rank)
        if (rank != cc->rank)
            COLL_TRY(coll_copy(coll_send_block(view, rank), coll_send_count(view, rank),
                               view->send_type, packed + side->displacements[rank],
                               side->bytes[rank], MPI_PACKED, cc));
    *scratch = packed;
    view->send = packed;
    return MPI_SUCCESS;
}

static struct coll_blocks blocks_of(const struct side *side) {
    return (struct coll_blocks){.large_counts = side->bytes,
                                .large_displacements = side->displacements};
}

/*
 * For routines that cut blocks: plain bytes in place of any datatypes. What is sent is packed if it
 * is not plain bytes. The second scratch has lengths and displacements, then what is received, if
 * that is not plain bytes.
 */
static int pack(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    const size_t p = (size_t)cc->size, room = 2 * p * (sizeof(MPI_Count) + sizeof(MPI_Aint));
    MPI_Count *bytes = malloc(room);
    int send_dense, recv_dense;
    if (bytes == NULL)
        return MPI_ERR_NO_MEM;
    scratch[1] = (char *)bytes;
    MPI_Aint *displacements = (void *)(bytes + 2 * p);
    struct side send = {bytes, displacements, 0}, recv = {bytes + p, displacements + p, 0};
    COLL_TRY(coll_is_dense(view->send_type, &send_dense));
    COLL_TRY(coll_is_dense(view->recv_type, &recv_dense));
    COLL_TRY(count_bytes(&view->send_blocks, view->send_type, view->send_stride, send_dense,
                         cc->size, &send));
    COLL_TRY(count_bytes(&view->recv_blocks, view->recv_type, view->recv_stride, recv_dense,
                         cc->size, &recv));
    if (!send_dense)
        COLL_TRY(pack_sent(view, cc, &send, &scratch[0]));
    if (!recv_dense) {
        const size_t all = room + (size_t)recv.together;
        char *longer = realloc(bytes, all);
        if (longer == NULL)
            return MPI_ERR_NO_MEM;
        scratch[1] = longer;
        bytes = (void *)longer;
        displacements = (void *)(bytes + 2 * p);
        send.bytes = bytes;
        send.displacements = displacements;
        recv.bytes = bytes + p;
        recv.displacements = displacements + p;
        view->recv = longer + room;
    }
    view->send_blocks = blocks_of(&send);
    view->recv_blocks = blocks_of(&recv);
    view->send_type = view->recv_type = MPI_PACKED;
    view->send_stride = view->recv_stride = 1;
    return MPI_SUCCESS;
}

/* What came from the others goes to the application, unless it is there; the own block is. */
static int unpack(const struct coll_call *call, const struct coll_comm *cc, const char *packed) {
    const struct coll_blocks *blocks = &call->recv_blocks;
    const size_t p = (size_t)cc->size;
    const MPI_Count *bytes = (const void *)packed;
    const MPI_Aint *displacements = (const void *)(bytes + 2 * p);
    const char *data = (const char *)(displacements + 2 * p);
    MPI_Aint stride;
    int dense;
    COLL_TRY(coll_is_dense(call->recv_type, &dense));
    if (dense)
        return MPI_SUCCESS;
    COLL_TRY(coll_extent(1, call->recv_type, &stride));
    for (int rank = 0; rank < cc->size; ++rank)
        if (rank != cc->rank)
            COLL_TRY(coll_copy(data + displacements[p + (size_t)rank], bytes[p + (size_t)rank],
                               MPI_PACKED,
                               (char *)call->recvbuf + coll_displacement_of(blocks, rank) * stride,
                               coll_count_of(blocks, rank), call->recv_type, cc));
    return MPI_SUCCESS;
}

/* In place, and if blocks have to be packed, no rank knows how much others copy. */
static double copies(const struct coll_call *call, int size, int dense) {
    (void)size;
    return call->sendbuf == MPI_IN_PLACE || dense ? INFINITY : 0;
}

const struct coll_view coll_view_alltoallv = {.measure = measure,
                                              .prepare = prepare,
                                              .finish = coll_nothing_to_finish,
                                              .pack = pack,
                                              .unpack = unpack,
                                              .copies = copies};
