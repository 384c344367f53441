/* An alltoall whose messages are all under way at once. */
#include <stdbool.h>
#include <stdlib.h>

#include "post_all.h"

static int post_all(const struct coll_call *call, const struct coll_comm *cc, bool spread) {
    const int p = cc->size, rank = cc->rank;
    MPI_Request *requests = malloc(2 * (size_t)p * sizeof *requests);
    int receives = 0, sends = 0, error = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;

    for (int step = 0; step < p && error == MPI_SUCCESS; ++step) {
        const int from = spread ? (rank - step + p) % p : step;
        if (from == rank)
            continue;
        error = coll_irecv(call, cc, from, &requests[receives]);
        receives += error == MPI_SUCCESS;
    }
    for (int step = 0; step < p && error == MPI_SUCCESS; ++step) {
        const int to = spread ? (rank + step) % p : step;
        if (to == rank)
            continue;
        error = coll_isend(call, cc, to, &requests[receives + sends]);
        sends += error == MPI_SUCCESS;
    }
    error = coll_complete(requests, receives, sends, error);
    free(requests);
    return error;
}

int coll_post_all_by_rank(const struct coll_call *call, const struct coll_comm *cc) {
    return post_all(call, cc, false);
}

int coll_post_all_spread(const struct coll_call *call, const struct coll_comm *cc) {
    return post_all(call, cc, true);
}
