/* What compositions of a reduce_scatter, or of a reduce_scatter_block, have in common. */
#ifndef SCATTERED_H
#define SCATTERED_H

#include "coll.h"

/* The elements of this rank for all ranks, and how many they are. */
const void *coll_scattered_input(const struct coll_call *call);
int coll_scattered_count(const struct coll_call *call, const struct coll_comm *cc);

/* Leave the result for all ranks in `all` on rank 0, by part 0, a reduce. */
int coll_scattered_reduce(const struct coll_call *call, const struct coll_comm *cc,
                          const struct coll_parameters *parameters, char *all);

/* Keep the own part of the result for all ranks. */
int coll_scattered_keep_own(const struct coll_call *call, const struct coll_comm *cc,
                            const char *all);

#endif
