/* The allgather of blocks of different lengths, as routines see it. */
#include "coll.h"

static int measure(struct coll_call *call) {
    int rank, size;
    COLL_TRY(coll_member(call->comm, &rank, &size));
    return coll_total_bytes(&call->recv_blocks, size, call->recv_type, &call->bytes);
}

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    (void)scratch;
    view->recv = view->recvbuf;
    COLL_TRY(coll_extent(1, view->recv_type, &view->recv_stride));
    if (view->sendbuf == MPI_IN_PLACE)
        return MPI_SUCCESS;
    return coll_copy(view->sendbuf, view->send_count, view->send_type,
                     coll_recv_block(view, cc->rank), coll_recv_count(view, cc->rank),
                     view->recv_type, cc);
}

/* Blocks in bytes: where they are, or one right after the other; returns the bytes of all. */
static MPI_Aint count_bytes(const struct coll_call *view, int size, int element, int dense,
                            MPI_Aint *displacements, int *counts) {
    MPI_Aint before = 0;
    for (int rank = 0; rank < size; ++rank) {
        counts[rank] = (int)coll_recv_count(view, rank) * element;
        displacements[rank] = dense ? coll_recv_block(view, rank) - view->recv : before;
        before += counts[rank];
    }
    return before;
}

static int pack_own(const struct coll_call *view, const struct coll_comm *cc, char *packed,
                    int bytes) {
    int position = 0;
    return PMPI_Pack(coll_recv_block(view, cc->rank), (int)coll_recv_count(view, cc->rank),
                     view->recv_type, packed, bytes, &position, cc->comm);
}

/*
 * For routines that cut blocks: plain bytes in place of any datatype. The first scratch has the
 * displacements and the lengths of the blocks, the second the blocks where they are not plain
 * bytes.
 */
static int pack(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    const size_t p = (size_t)cc->size;
    int dense, element;
    COLL_TRY(coll_is_dense(view->recv_type, &dense));
    COLL_TRY(PMPI_Type_size(view->recv_type, &element));
    COLL_TRY(coll_allocate((MPI_Aint)(p * (sizeof(MPI_Aint) + sizeof(int))), &scratch[0]));
    MPI_Aint *displacements = (void *)scratch[0];
    int *counts = (void *)(displacements + p);
    const MPI_Aint all = count_bytes(view, cc->size, element, dense, displacements, counts);
    if (!dense) {
        COLL_TRY(coll_allocate(all, &scratch[1]));
        COLL_TRY(pack_own(view, cc, scratch[1] + displacements[cc->rank], counts[cc->rank]));
        view->recv = scratch[1];
    }
    view->recv_blocks =
        (struct coll_blocks){.counts = counts, .large_displacements = displacements};
    view->recv_type = MPI_PACKED;
    view->recv_stride = 1;
    return MPI_SUCCESS;
}

/* Unpack what came from the others, if it is in the scratch; the own block is at its place. */
static int unpack(const struct coll_call *call, const struct coll_comm *cc, const char *packed) {
    MPI_Aint stride;
    int element, position = 0;
    COLL_TRY(coll_extent(1, call->recv_type, &stride));
    COLL_TRY(PMPI_Type_size(call->recv_type, &element));
    for (int rank = 0; rank < cc->size && packed != NULL; ++rank) {
        const int count = (int)coll_recv_count(call, rank);
        char *block =
            (char *)call->recvbuf + coll_displacement_of(&call->recv_blocks, rank) * stride;
        if (rank == cc->rank)
            position += count * element;
        else
            COLL_TRY(PMPI_Unpack(packed, (int)call->bytes, &position, block, count, call->recv_type,
                                 cc->comm));
    }
    return MPI_SUCCESS;
}

/* What pack may copy, all blocks, and where they are. */
static double copies(const struct coll_call *call, int size, int dense) {
    const double room = sizeof(MPI_Aint) + sizeof(int);
    return dense ? (double)call->bytes + size * room : 0;
}

const struct coll_view coll_view_allgatherv = {.measure = measure,
                                               .prepare = prepare,
                                               .finish = coll_nothing_to_finish,
                                               .pack = pack,
                                               .unpack = unpack,
                                               .copies = copies};
