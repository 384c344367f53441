/* Operands on their way up a tree, in segments. */
#include <stdlib.h>

#include "pipeline_up.h"

/* Segments that may be on their way from each child, and to the parent, at the same time. */
enum { IN_FLIGHT = 8 };

/* The receives and sends under way; segment s has place s % IN_FLIGHT among either. */
struct flight {
    int segment;             /* elements of a segment */
    int room;                /* elements that there is room for, of each child */
    struct coll_elements in; /* that room: of IN_FLIGHT segments, or of all if they are fewer */
    MPI_Request receives[TREE_CHILDREN_MOST][IN_FLIGHT];
    MPI_Request sends[IN_FLIGHT];
};

/* Elements of segment s; the last one may be shorter, and there is none after it. */
static int elements_of(const struct coll_call *call, const struct flight *flight, MPI_Aint s) {
    const MPI_Aint rest = call->recv_count - s * flight->segment;
    return rest < 0 ? 0 : rest < flight->segment ? (int)rest : flight->segment;
}

/* Where the operands of a child for segment s arrive. */
static char *room_for(const struct coll_call *call, const struct flight *flight, int child,
                      MPI_Aint s) {
    const MPI_Aint before = s % IN_FLIGHT * flight->segment;
    return coll_element(call, flight->in.data, (MPI_Aint)child * flight->room + before);
}

/* Let segment s come from a child, unless there is no such segment. */
static int expect(const struct coll_call *call, const struct coll_comm *cc,
                  const struct tree_node *node, int child, MPI_Aint s, struct flight *flight) {
    const int count = elements_of(call, flight, s);
    if (count == 0)
        return MPI_SUCCESS;
    return PMPI_Irecv(room_for(call, flight, child, s), count, call->recv_type, node->child[child],
                      COLL_TAG_DATA, cc->comm, &flight->receives[child][s % IN_FLIGHT]);
}

/* Combine segment s with what arrived, let later ones come, and send it on. */
static int advance(const struct coll_call *call, const struct coll_comm *cc,
                   const struct tree_node *node, MPI_Aint s, struct flight *flight) {
    const int count = elements_of(call, flight, s);
    char *mine = coll_element(call, call->recv, s * flight->segment);
    for (int i = 0; i < node->children; ++i) {
        COLL_TRY(PMPI_Wait(&flight->receives[i][s % IN_FLIGHT], MPI_STATUS_IGNORE));
        COLL_TRY(coll_fold(call, cc, room_for(call, flight, i, s), mine, count,
                           node->child[i] < cc->rank));
        COLL_TRY(expect(call, cc, node, i, s + IN_FLIGHT, flight));
    }
    COLL_TRY(PMPI_Wait(&flight->sends[s % IN_FLIGHT], MPI_STATUS_IGNORE));
    return PMPI_Isend(mine, count, call->recv_type, node->parent, COLL_TAG_DATA, cc->comm,
                      &flight->sends[s % IN_FLIGHT]);
}

static int run_flight(const struct coll_call *call, const struct coll_comm *cc,
                      const struct tree_node *node, struct flight *flight) {
    int error = MPI_SUCCESS;
    for (int i = 0; i < IN_FLIGHT; ++i) {
        flight->sends[i] = MPI_REQUEST_NULL;
        for (int child = 0; child < node->children; ++child)
            flight->receives[child][i] = MPI_REQUEST_NULL;
    }
    for (MPI_Aint s = 0; s < IN_FLIGHT; ++s)
        for (int i = 0; i < node->children && error == MPI_SUCCESS; ++i)
            error = expect(call, cc, node, i, s, flight);
    for (MPI_Aint s = 0; elements_of(call, flight, s) > 0 && error == MPI_SUCCESS; ++s)
        error = advance(call, cc, node, s, flight);
    if (error != MPI_SUCCESS)
        coll_abandon(flight->receives[0], node->children * IN_FLIGHT, 0);
    return coll_complete(flight->sends, 0, IN_FLIGHT, error);
}

int coll_pipeline_up(const struct coll_call *call, const struct coll_comm *cc,
                     const struct tree_node *node, int segment_size) {
    const int count = call->recv_count;
    const MPI_Aint wanted = segment_size / (call->bytes / count);
    struct flight flight = {.segment = wanted < 1 ? 1 : wanted < count ? (int)wanted : count};
    const MPI_Aint most = (MPI_Aint)IN_FLIGHT * flight.segment;
    flight.room = most < count ? (int)most : count;
    COLL_TRY(coll_elements_for(call, (MPI_Count)node->children * flight.room, &flight.in));
    const int error = run_flight(call, cc, node, &flight);
    free(flight.in.memory);
    return error;
}
