/* The blocks of an alltoall as packed bytes, call->bytes for each of them. */
#ifndef BLOCK_PACK_H
#define BLOCK_PACK_H

#include "coll.h"

/* Copy the block for rank `to` to a place, as packed bytes. */
int coll_block_pack(const struct coll_call *call, const struct coll_comm *cc, int to, char *place);

/* Put the block of rank `from`, packed bytes at a place, where it belongs. */
int coll_block_unpack(const struct coll_call *call, const struct coll_comm *cc, int from,
                      const char *place);

#endif
