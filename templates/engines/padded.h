/* The elements of a call in equally long blocks, for compositions whose parts ask for them. */
#ifndef PADDED_H
#define PADDED_H

#include "coll.h"

/* The p blocks are where the elements are; or in memory, with the last filled up. */
struct padded {
    int count; /* elements of a block */
    struct coll_elements elements;
};

int coll_padded_make(const struct coll_call *call, const struct coll_comm *cc,
                     struct padded *padded);

/* Leave the own block of the result in `block`, by part 0, a reduce_scatter_block. */
int coll_padded_reduce_scatter(const struct coll_call *call, const struct coll_comm *cc,
                               const struct coll_parameters *parameters,
                               const struct padded *padded, char *block);

#endif
