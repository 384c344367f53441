/* The operands of all ranks, combined in the order of the ranks. */
#ifndef RANK_ORDER_H
#define RANK_ORDER_H

#include "coll.h"

/* Combine `count` elements of each rank, `stride` bytes apart in `operands`; overwrites them. */
int coll_rank_order_combine(const struct coll_call *call, const struct coll_comm *cc,
                            char *operands, MPI_Aint stride, int count, char *result);

#endif
