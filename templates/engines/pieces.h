/* Pieces of blocks, copied. */
#ifndef PIECES_H
#define PIECES_H

#include <mpi.h>

/* Copy `bytes` of every block; the strides say how far apart blocks are there and here. */
void coll_pieces_copy(const char *from, MPI_Aint from_stride, char *to, MPI_Aint to_stride,
                      MPI_Aint bytes, int blocks);

#endif
