#include "conformance.h"

static int entry(const struct coll_call *call) {
    return MPI_Barrier(call->comm);
}

const struct coll_case coll_case_barrier = {
    .send = CASE_NOTHING,
    .recv = CASE_NOTHING,
    .in_place = CASE_NEVER,
    .entry = entry,
};
