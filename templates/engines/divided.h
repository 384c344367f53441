/* Elements as blocks for all ranks, one after the other and as even as can be. */
#ifndef DIVIDED_H
#define DIVIDED_H

#include "coll.h"

/* Divide the elements into blocks for all ranks; the caller frees *memory. */
int coll_divided_make(int elements, const struct coll_comm *cc, int **memory,
                      struct coll_blocks *blocks);

#endif
