/* The elements of an allreduce as equally long blocks, which an allgather can bring to all. */
#ifndef EVEN_BLOCKS_H
#define EVEN_BLOCKS_H

#include "coll.h"

/*
 * The blocks of all ranks are at their place; or in memory where p does not divide the elements,
 * so that the last blocks have room after their elements.
 */
struct even_blocks {
    int count; /* elements of a block */
    struct coll_elements elements;
};

/* Find the blocks; in memory, they have no elements yet. After an error, memory is not freed. */
int coll_even_blocks_make(const struct coll_call *call, const struct coll_comm *cc,
                          struct even_blocks *blocks);

/* Where the block of a rank is; where it begins among the elements; how many of them it has. */
char *coll_even_blocks_at(const struct coll_call *call, const struct even_blocks *blocks, int rank);
MPI_Aint coll_even_blocks_start(const struct coll_call *call, const struct even_blocks *blocks,
                                int rank);
int coll_even_blocks_count(const struct coll_call *call, const struct even_blocks *blocks,
                           int rank);

/* Each rank has its own block of the result: bring all to all, by the allgather of that name. */
int coll_even_blocks_gather(const struct coll_call *call, const struct coll_comm *cc,
                            const struct even_blocks *blocks, const char *allgather);

#endif
