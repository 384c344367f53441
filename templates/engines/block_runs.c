/* Messages of the blocks of ranks that follow each other, around; blocks may differ in length. */
#include <stdlib.h>

#include "block_runs.h"

/* The blocks of so many ranks from one on, as one type in the receive buffer. */
static int make_run(const struct coll_call *call, int p, int first, int ranks, MPI_Datatype *run,
                    MPI_Count *elements) {
    int *lengths = malloc((size_t)ranks * sizeof *lengths), error = MPI_ERR_NO_MEM;
    MPI_Aint *displacements = malloc((size_t)ranks * sizeof *displacements);
    *elements = 0;
    if (lengths != NULL && displacements != NULL) {
        for (int i = 0; i < ranks; ++i) {
            const int rank = (first + i) % p;
            lengths[i] = (int)coll_recv_count(call, rank);
            displacements[i] = coll_recv_block(call, rank) - call->recv;
            *elements += lengths[i];
        }
        error = PMPI_Type_create_hindexed(ranks, lengths, displacements, call->recv_type, run);
    }
    free(lengths);
    free(displacements);
    return error == MPI_SUCCESS ? PMPI_Type_commit(run) : error;
}

int coll_run_irecv(const struct coll_call *call, const struct coll_comm *cc, int first, int ranks,
                   int from, MPI_Request *request) {
    MPI_Datatype run;
    MPI_Count elements;
    *request = MPI_REQUEST_NULL;
    COLL_TRY(make_run(call, cc->size, first, ranks, &run, &elements));
    const int peer = coll_peer(from, elements, call->recv_type);
    int error = MPI_SUCCESS;
    if (peer != MPI_PROC_NULL)
        error = PMPI_Irecv(call->recv, 1, run, peer, COLL_TAG_DATA, cc->comm, request);
    COLL_TRY(PMPI_Type_free(&run)); /* it lives on until the message is through */
    return error;
}

int coll_run_isend(const struct coll_call *call, const struct coll_comm *cc, int first, int ranks,
                   int to, MPI_Request *request) {
    MPI_Datatype run;
    MPI_Count elements;
    *request = MPI_REQUEST_NULL;
    COLL_TRY(make_run(call, cc->size, first, ranks, &run, &elements));
    const int peer = coll_peer(to, elements, call->recv_type);
    int error = MPI_SUCCESS;
    if (peer != MPI_PROC_NULL)
        error = PMPI_Isend(call->recv, 1, run, peer, COLL_TAG_DATA, cc->comm, request);
    COLL_TRY(PMPI_Type_free(&run));
    return error;
}
