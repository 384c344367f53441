/* The ranks of a communicator that usually come early, and those that come late. */
#ifndef EARLY_RANKS_H
#define EARLY_RANKS_H

#include "coll.h"
#include "learned_order.h"

/*
 * Early ranks have the first numbers. They are in the order of the hosts where it is known, else in
 * that of the ranks. Late ranks come after them, the latest last.
 */
struct early_ranks {
    int *ranks; /* [number] -> rank; to be freed */
    int early, late;
    int number; /* of this rank */
    int root_is_late;
};

/*
 * Find them by what is known of arrivals. If that is NULL, all ranks are early. At most `most` are
 * late. The order goes around from `root` on, which has number 0 even if it is late. Without a
 * root, this is MPI_PROC_NULL.
 */
int coll_early_ranks_find(const struct coll_comm *cc, const struct learned_order *arrivals,
                          int root, int most, struct early_ranks *found);

#endif
