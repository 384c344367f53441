/* Pieces of blocks: where a half of one is, and copies of them. */
#ifndef PIECES_H
#define PIECES_H

#include <mpi.h>

/* Where a half of some bytes or elements begins, and how many it has. */
struct coll_half {
    MPI_Aint first, count;
};

/* Return half 0 or 1 of `count`. If that is odd, half 1 has one more. */
static inline struct coll_half coll_half_of(MPI_Aint count, int half) {
    const MPI_Aint first = half == 0 ? 0 : count / 2;
    return (struct coll_half){first, half == 0 ? count / 2 : count - first};
}

/* Copy `bytes` of every block; the strides say how far apart blocks are there and here. */
void coll_pieces_copy(const char *from, MPI_Aint from_stride, char *to, MPI_Aint to_stride,
                      MPI_Aint bytes, int blocks);

#endif
