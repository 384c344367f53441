/* An allreduce in which ranks wait for the owners of their lanes only. */
#ifndef LANES_H
#define LANES_H

#include "coll.h"

/*
 * The message is cut into lanes, one for each of the ranks of a part that usually come early, or
 * fewer if it is short: as many in each part, so each lane has an owner in each part. A rank sends
 * each lane to its owner, which combines lanes as they come. The owners of a lane exchange what
 * their parts have, and send the result to the ranks of their parts. Lanes go in segments of about
 * segment_size bytes.
 */
int coll_lanes_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                         const struct coll_parted *parted, int segment_size);

#endif
