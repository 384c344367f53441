/* Operands of all ranks as plain bytes, for compositions that bring them to a rank and combine. */
#ifndef PACKED_OPERANDS_H
#define PACKED_OPERANDS_H

#include "coll.h"

/* The elements that a rank brings to an allreduce or to a reduce. */
const void *coll_packed_operands_input(const struct coll_call *call);

/* Elements as plain bytes, and back. */
int coll_packed_operands_pack(const struct coll_call *call, const struct coll_comm *cc,
                              const void *elements, int count, char *packed);
int coll_packed_operands_unpack(const struct coll_call *call, const struct coll_comm *cc,
                                const char *packed, void *elements, int count);

/* Combine `count` elements of each rank, `bytes` apart, in the order of the ranks. */
int coll_packed_operands_combine(const struct coll_call *call, const struct coll_comm *cc,
                                 const char *packed, MPI_Aint bytes, char *result, int count);

#endif
