/* An allgather on a mesh of ranks, along one side after the other. */
#ifndef MESH_GATHER_H
#define MESH_GATHER_H

#include "coll.h"

/* The allgather or allgatherv of a call, on a mesh of 2 or 3 dimensions: see mesh_sides.h. */
int coll_mesh_gather(const struct coll_call *call, const struct coll_comm *cc, int dimensions);

#endif
