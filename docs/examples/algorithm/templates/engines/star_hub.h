/* The two messages between the hub of a star and another rank. */
#ifndef STAR_HUB_H
#define STAR_HUB_H

#include "coll.h"

enum { STAR_HUB = 0 };

/* The block of `rank` goes to its place on the hub. Called on both of them. */
int star_to_hub(const struct coll_call *call, const struct coll_comm *cc, int rank);

/* All blocks, `count` elements, go from the hub to `rank`. Called on both of them. */
int star_from_hub(const struct coll_call *call, const struct coll_comm *cc, int rank, int count);

#endif
