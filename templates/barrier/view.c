/* The barrier as routines see it: a communicator. */
#include "coll.h"

static int measure(struct coll_call *call) {
    call->bytes = 0;
    return MPI_SUCCESS;
}

static int prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch) {
    (void)view;
    (void)cc;
    (void)scratch;
    return MPI_SUCCESS;
}

const struct coll_view coll_view_barrier = {
    .measure = measure, .prepare = prepare, .finish = coll_nothing_to_finish};
