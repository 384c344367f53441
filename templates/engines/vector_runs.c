/* Blocks of ranks that follow each other around, exchanged and combined. */
#include <stddef.h>

#include "vector_blocks.h"
#include "vector_runs.h"

struct runs coll_runs_of_blocks(const struct coll_call *call, int p, int rank, int ranks) {
    const int around = rank + ranks > p ? rank + ranks - p : 0, end = rank + ranks - around;
    const MPI_Aint first = coll_vector_block_start(call, p, rank);
    return (struct runs){
        .first = {first, 0},
        .count = {(int)(coll_vector_block_start(call, p, end) - first),
                  (int)coll_vector_block_start(call, p, around)},
    };
}

/* Where a run goes that arrives. */
static char *place_for(const struct coll_call *call, const struct runs *taken, int i, char *room) {
    return room == NULL ? coll_element(call, call->recv, taken->first[i])
                        : coll_element(call, room, i * taken->count[0]);
}

int coll_runs_swap(const struct coll_call *call, const struct coll_comm *cc, int to,
                   const struct runs *given, int from, const struct runs *taken, char *room) {
    MPI_Request requests[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                              MPI_REQUEST_NULL};
    int error = MPI_SUCCESS;
    for (int i = 0; i < 2 && error == MPI_SUCCESS; ++i)
        if (taken->count[i] > 0)
            error = PMPI_Irecv(place_for(call, taken, i, room), taken->count[i], call->recv_type,
                               from, COLL_TAG_DATA, cc->comm, &requests[i]);
    for (int i = 0; i < 2 && error == MPI_SUCCESS; ++i)
        if (given->count[i] > 0)
            error = PMPI_Isend(coll_element(call, call->recv, given->first[i]), given->count[i],
                               call->recv_type, to, COLL_TAG_DATA, cc->comm, &requests[2 + i]);
    return coll_complete(requests, 2, 2, error);
}

int coll_runs_fold(const struct coll_call *call, const struct coll_comm *cc,
                   const struct runs *taken, char *room, int theirs_first) {
    for (int i = 0; i < 2; ++i)
        if (taken->count[i] > 0)
            COLL_TRY(coll_fold(call, cc, place_for(call, taken, i, room),
                               coll_element(call, call->recv, taken->first[i]), taken->count[i],
                               theirs_first));
    return MPI_SUCCESS;
}
