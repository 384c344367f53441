/* Routines that another one runs: those of `uses` in its template, so that the library has them. */
#include "used.h"

const struct coll_routine *coll_used_routine(enum coll_collective collective, const char *name,
                                             const struct coll_comm *cc) {
    return coll_routine_for(coll_find_routine(collective, name), cc);
}

int coll_used_run(const char *name, const struct coll_call *call, const struct coll_comm *cc) {
    const struct coll_routine *routine = coll_used_routine(call->collective, name, cc);
    return coll_run_inside(routine, call, cc, &routine->defaults);
}
