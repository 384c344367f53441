/* How many ranks a mesh has along each side. */
#ifndef MESH_SIDES_H
#define MESH_SIDES_H

/*
 * Find 2 or 3 sides whose product is p and whose sum is least, as a rank sends a message to every
 * other rank on each of its lines. If p is prime, all ranks are on one line.
 */
void coll_mesh_sides(int p, int dimensions, int *sides);

#endif
