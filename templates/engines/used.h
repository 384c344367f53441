/* Routines that another one runs: those of `uses` in its template. */
#ifndef USED_H
#define USED_H

#include "coll.h"

/* The routine of that name for the communicator. */
const struct coll_routine *coll_used_routine(enum coll_collective collective, const char *name,
                                             const struct coll_comm *cc);

/* Run it, with its default parameters, on a call such as an application makes. */
int coll_used_run(const char *name, const struct coll_call *call, const struct coll_comm *cc);

#endif
