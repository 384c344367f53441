/* All-to-all between the points of a mesh, along one side after the other. */
#ifndef MESH_SWAP_H
#define MESH_SWAP_H

#include <stddef.h>

#include "coll.h"

/*
 * The ranks below `points` are the points of a mesh; the product of its sides is `points`. Each of
 * them has a slot of so many bytes for every point. At first slot x holds what goes to point x, at
 * the end what came from point x.
 *
 * `work` has room for twice the slots, `requests` for a receive and a send per rank on a line.
 */
int coll_mesh_swap(const struct coll_comm *cc, int points, const int *sides, size_t bytes,
                   char *slots, char *work, MPI_Request *requests);

#endif
