/* Views of calls whose blocks are packed bytes: for `pack` and `unpack` of collectives. */
#ifndef PACKED_H
#define PACKED_H

#include "coll.h"

/* Let a view send, or receive, blocks of plain bytes, one after the other. */
void coll_packed_send(struct coll_call *view, const char *packed);
void coll_packed_receive(struct coll_call *view, char *packed);

/* Pack the blocks of all ranks, of `bytes` bytes each, one after the other. */
int coll_packed_blocks(const char *blocks, MPI_Aint stride, int count, MPI_Datatype type,
                       MPI_Aint bytes, char *packed, const struct coll_comm *cc);

/*
 * Unpack the blocks that came from the others to the receive buffer, if they are packed and not
 * NULL; the own block is at its place.
 */
int coll_packed_unpack_others(const struct coll_call *call, const struct coll_comm *cc,
                              const char *packed);

#endif
