/* The alltoall with blocks of different lengths, as routines see it. */
#include <math.h>

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

/* In place, no rank knows how much others have. */
static double copies(const struct coll_call *call, int size, int dense) {
    (void)size;
    (void)dense;
    return call->sendbuf == MPI_IN_PLACE ? INFINITY : 0;
}

const struct coll_view coll_view_alltoallv = {
    .measure = measure, .prepare = prepare, .finish = finish, .copies = copies};
