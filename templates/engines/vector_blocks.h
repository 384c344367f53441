/* The elements of a reduction as blocks, one for each rank or place. */
#ifndef VECTOR_BLOCKS_H
#define VECTOR_BLOCKS_H

#include "coll.h"

/* Elements that follow each other. */
struct block {
    MPI_Aint first;
    int count;
};

/*
 * Block `number` of p, and where it begins; number p is the end of the last. A reduce_scatter has a
 * table of the blocks. In other collectives they are as even as can be.
 */
struct block coll_vector_block(const struct coll_call *call, int p, int number);
MPI_Aint coll_vector_block_start(const struct coll_call *call, int p, int number);

#endif
