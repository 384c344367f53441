/* An allreduce in lanes that go around a ring in each part. */
#ifndef LANE_RINGS_H
#define LANE_RINGS_H

#include "coll.h"

/*
 * In each part, the owners of lanes combine their operands around a ring: each gets the sum for its
 * lane. Other ranks, the late ones, send each owner its lane. The owners of a lane exchange what
 * their parts have. The results go around the ring, and from their owners to the late ranks. Lanes
 * go in segments of about segment_size bytes.
 */
int coll_lane_rings_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                              const struct coll_parted *parted, int segment_size);

#endif
