/* The alltoall with blocks of different lengths, as routines see it. */
#include <math.h>
#include <stdlib.h>

#include "coll.h"

/* A rank knows its own blocks only, so one rule serves all calls. */
static int measure(struct coll_call *call) {
    call->bytes = 0;
    return MPI_SUCCESS;
}

static MPI_Count elements_received(const struct coll_call *view, int size) {
    MPI_Count elements = 0;
    for (int rank = 0; rank < size; ++rank)
        elements += coll_recv_count(view, rank);
    return elements;
}

/* Copy what the receive buffer holds to the elements sent, one block right after the other. */
static int copy_received(const struct coll_call *view, const struct coll_comm *cc,
                         MPI_Aint *displacements, char *elements) {
    MPI_Count before = 0;
    for (int rank = 0; rank < cc->size; ++rank) {
        const MPI_Count count = coll_recv_count(view, rank);
        displacements[rank] = (MPI_Aint)before;
        if (rank != cc->rank)
            COLL_TRY(coll_copy(coll_recv_block(view, rank), count, view->recv_type,
                               elements + (MPI_Aint)before * view->send_stride, count,
                               view->send_type, cc));
        before += count;
    }
    return MPI_SUCCESS;
}

/*
 * In place, which all ranks are or none, a rank sends what its receive buffer holds, as much to
 * another as it gets from it: send from a copy. It is of the same data, not of packed bytes, which
 * an int need not count; blocks may lie apart only because of where they are. The scratch has the
 * displacements of the blocks, then their elements.
 */
static int send_copy(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    const MPI_Aint room = cc->size * (MPI_Aint)sizeof(MPI_Aint);
    struct coll_call sent = {0};
    MPI_Aint low, bytes;
    COLL_TRY(coll_spaced_type(view->recv_type, &sent.recv_type, &view->spaced));
    view->send_type = sent.recv_type;
    COLL_TRY(coll_extent(1, view->send_type, &view->send_stride));
    COLL_TRY(coll_span(&sent, elements_received(view, cc->size), &low, &bytes));
    COLL_TRY(coll_allocate(room + bytes, scratch));
    MPI_Aint *displacements = (void *)*scratch;
    char *elements = *scratch + room - low;
    COLL_TRY(copy_received(view, cc, displacements, elements));
    view->send = elements;
    view->send_blocks = (struct coll_blocks){
        .counts = view->recv_blocks.counts,
        .large_counts = view->recv_blocks.large_counts,
        .large_displacements = displacements,
    };
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

static int finish(const struct coll_call *view, const struct coll_comm *cc) {
    MPI_Datatype sent = view->send_type;
    (void)cc;
    return view->spaced ? PMPI_Type_free(&sent) : MPI_SUCCESS;
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

/* Pack what goes to the others. The elements that prepare copied may go then. */
static int pack_sent(struct coll_call *view, const struct coll_comm *cc, const struct side *side,
                     char **scratch) {
    char *packed;
    COLL_TRY(coll_allocate(side->together, &packed));
    for (int rank = 0; rank < cc->size; ++rank)
        if (rank != cc->rank)
            COLL_TRY(coll_copy(coll_send_block(view, rank), coll_send_count(view, rank),
                               view->send_type, packed + side->displacements[rank],
                               side->bytes[rank], MPI_PACKED, cc));
    free(*scratch);
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
    MPI_Datatype sent = view->send_type;
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
    if (view->spaced)
        COLL_TRY(PMPI_Type_free(&sent));
    view->spaced = 0;
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
                                              .finish = finish,
                                              .pack = pack,
                                              .unpack = unpack,
                                              .copies = copies};
