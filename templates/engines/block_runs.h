/* Messages of the blocks of ranks that follow each other, around; blocks may differ in length. */
#ifndef BLOCK_RUNS_H
#define BLOCK_RUNS_H

#include "coll.h"

/*
 * Start to receive, or to send, the blocks of so many ranks from one on, from and to their places
 * in the receive buffer. If they have no data, there is no message.
 */
int coll_run_irecv(const struct coll_call *call, const struct coll_comm *cc, int first, int ranks,
                   int from, MPI_Request *request);
int coll_run_isend(const struct coll_call *call, const struct coll_comm *cc, int first, int ranks,
                   int to, MPI_Request *request);

#endif
