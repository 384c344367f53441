/* Blocks of ranks that follow each other around, exchanged and combined. */
#ifndef VECTOR_RUNS_H
#define VECTOR_RUNS_H

#include "coll.h"

/* Elements of the vector: one run of them, or two where they go on past the last rank. */
struct runs {
    MPI_Aint first[2];
    int count[2];
};

/* The blocks of so many ranks from one on, around. */
struct runs coll_runs_of_blocks(const struct coll_call *call, int p, int rank, int ranks);

/*
 * Receive `taken` from one rank while `given` goes to another. What arrives goes into `room`, run
 * after run; without room, to its place. A run is a message, unless it is empty.
 */
int coll_runs_swap(const struct coll_call *call, const struct coll_comm *cc, int to,
                   const struct runs *given, int from, const struct runs *taken, char *room);

/* Combine what arrived in `room` with the own elements; theirs come first if that rank does. */
int coll_runs_fold(const struct coll_call *call, const struct coll_comm *cc,
                   const struct runs *taken, char *room, int theirs_first);

#endif
