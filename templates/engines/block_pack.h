/* The blocks of an alltoall as packed bytes, call->bytes for each of them. */
#ifndef BLOCK_PACK_H
#define BLOCK_PACK_H

#include "coll.h"

/* Pack the block for rank `to`. */
int coll_block_pack(const struct coll_call *call, const struct coll_comm *cc, int to, char *packed);

/* Unpack the block of rank `from` to where it belongs. */
int coll_block_unpack(const struct coll_call *call, const struct coll_comm *cc, int from,
                      const char *packed);

#endif
