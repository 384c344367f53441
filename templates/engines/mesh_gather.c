/* An allgather on a mesh of ranks, along one side after the other. */
#include <stdlib.h>

#include "block_runs.h"
#include "mesh_gather.h"
#include "mesh_sides.h"

enum { DIMENSIONS_MOST = 3 };

struct mesh {
    const struct coll_call *call;
    const struct coll_comm *cc;
    MPI_Datatype block; /* MPI_DATATYPE_NULL: blocks differ in length */
    MPI_Request *requests;
};

/* Start to receive, or to send, the blocks of so many ranks from one on. */
static int receive(const struct mesh *mesh, int first, int ranks, int from, MPI_Request *request) {
    if (mesh->block == MPI_DATATYPE_NULL)
        return coll_run_irecv(mesh->call, mesh->cc, first, ranks, from, request);
    return PMPI_Irecv(coll_recv_block(mesh->call, first), ranks, mesh->block, from, COLL_TAG_DATA,
                      mesh->cc->comm, request);
}

static int send(const struct mesh *mesh, int first, int ranks, int to, MPI_Request *request) {
    if (mesh->block == MPI_DATATYPE_NULL)
        return coll_run_isend(mesh->call, mesh->cc, first, ranks, to, request);
    return PMPI_Isend(coll_recv_block(mesh->call, first), ranks, mesh->block, to, COLL_TAG_DATA,
                      mesh->cc->comm, request);
}

/*
 * Along one side, whose ranks on a line are `stride` apart: each has the blocks of `stride` ranks
 * in a row, itself among them, and sends them to all others on its line.
 */
static int gather_along(const struct mesh *mesh, int side, int stride) {
    const int own = mesh->cc->rank, mine = own / stride * stride, here = own / stride % side;
    int receives = 0, sends = 0, error = MPI_SUCCESS;
    for (int i = 1; i < side && error == MPI_SUCCESS; ++i) {
        const int away = ((here + side - i) % side - here) * stride;
        error = receive(mesh, mine + away, stride, own + away, &mesh->requests[receives]);
        receives += error == MPI_SUCCESS;
    }
    for (int i = 1; i < side && error == MPI_SUCCESS; ++i) {
        const int away = ((here + i) % side - here) * stride;
        error = send(mesh, mine, stride, own + away, &mesh->requests[receives + sends]);
        sends += error == MPI_SUCCESS;
    }
    return coll_complete(mesh->requests, receives, sends, error);
}

int coll_mesh_gather(const struct coll_call *call, const struct coll_comm *cc, int dimensions) {
    int sides[DIMENSIONS_MOST], error = MPI_SUCCESS;
    struct mesh mesh = {call, cc, MPI_DATATYPE_NULL, NULL};
    if (!coll_is_uneven(&call->recv_blocks))
        COLL_TRY(
            coll_block_type(call->recv_count, call->recv_type, call->recv_stride, &mesh.block));
    mesh.requests = malloc(2 * (size_t)cc->size * sizeof *mesh.requests);
    if (mesh.requests == NULL)
        error = MPI_ERR_NO_MEM;
    coll_mesh_sides(cc->size, dimensions, sides);
    for (int i = 0, stride = 1; i < dimensions && error == MPI_SUCCESS; stride *= sides[i++])
        error = gather_along(&mesh, sides[i], stride);
    free(mesh.requests);
    if (mesh.block != MPI_DATATYPE_NULL)
        COLL_TRY(PMPI_Type_free(&mesh.block));
    return error;
}
