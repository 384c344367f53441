/* A message on its way down a tree, in segments. */
#include "pipeline_down.h"

/* Segments that may be on their way to a rank, and to each of its children, at the same time. */
enum { IN_FLIGHT = 8 };

/* The receives and sends under way; segment s has place s % IN_FLIGHT among either. */
struct flight {
    MPI_Request receives[IN_FLIGHT];
    MPI_Request sends[TREE_CHILDREN_MOST][IN_FLIGHT];
};

/* The last segment may be shorter. */
static int segment_bytes(const struct coll_call *call, MPI_Aint segment, int segment_size) {
    const MPI_Aint rest = call->bytes - segment * segment_size;
    return rest < segment_size ? (int)rest : segment_size;
}

/* Send segment s, which is here, to all children. */
static int send_on(const struct coll_call *call, const struct coll_comm *cc,
                   const struct tree_node *node, int segment_size, MPI_Aint s,
                   struct flight *flight) {
    for (int i = 0; i < node->children; ++i) {
        MPI_Request *request = &flight->sends[i][s % IN_FLIGHT];
        COLL_TRY(PMPI_Wait(request, MPI_STATUS_IGNORE));
        COLL_TRY(PMPI_Isend(call->recv + s * segment_size, segment_bytes(call, s, segment_size),
                            MPI_PACKED, node->child[i], COLL_TAG_DATA, cc->comm, request));
    }
    return MPI_SUCCESS;
}

/* Send segment s on when it is here, unless s < 0, and let segment s + IN_FLIGHT come. */
static int advance(const struct coll_call *call, const struct coll_comm *cc,
                   const struct tree_node *node, int segment_size, MPI_Aint s,
                   struct flight *flight) {
    const MPI_Aint ahead = s + IN_FLIGHT; /* its receive replaces the one of segment s */
    if (s >= 0) {
        COLL_TRY(PMPI_Wait(&flight->receives[s % IN_FLIGHT], MPI_STATUS_IGNORE));
        COLL_TRY(send_on(call, cc, node, segment_size, s, flight));
    }
    if (ahead * segment_size >= call->bytes)
        return MPI_SUCCESS;
    return PMPI_Irecv(call->recv + ahead * segment_size, segment_bytes(call, ahead, segment_size),
                      MPI_PACKED, node->parent, COLL_TAG_DATA, cc->comm,
                      &flight->receives[ahead % IN_FLIGHT]);
}

int coll_pipeline_down(const struct coll_call *call, const struct coll_comm *cc,
                       const struct tree_node *node, int segment_size) {
    struct flight flight;
    const MPI_Aint segments = (call->bytes + segment_size - 1) / segment_size;
    int error = MPI_SUCCESS;
    for (int i = 0; i < IN_FLIGHT; ++i) {
        flight.receives[i] = MPI_REQUEST_NULL;
        for (int child = 0; child < node->children; ++child)
            flight.sends[child][i] = MPI_REQUEST_NULL;
    }
    for (MPI_Aint s = -IN_FLIGHT; s < segments && error == MPI_SUCCESS; ++s)
        error = advance(call, cc, node, segment_size, s, &flight);
    if (error != MPI_SUCCESS)
        coll_abandon(flight.receives, IN_FLIGHT, 0);
    return coll_complete(flight.sends[0], 0, node->children * IN_FLIGHT, error);
}
