/* Lanes of an allreduce: how the message is cut, and which ranks own the lanes in each part. */
#ifndef LANE_OWNERS_H
#define LANE_OWNERS_H

#include "coll.h"
#include "learned_order.h"
#include "vector_blocks.h"

/* The most segments of a lane. */
enum { LANE_SEGMENTS = 32 };

/*
 * The message is cut into lanes, one for each of the ranks of a part that usually come early, or
 * fewer if it is short: as many in each part, so each lane has an owner in each part. In each call,
 * the owners of one part, the speaker, tell the levels of its ranks, in the tags of messages that
 * they send anyway.
 */
struct lane_owners {
    const struct coll_call *call;
    const struct coll_comm *cc;
    const struct coll_parted *parted;
    struct learned_order *arrivals;
    int *order;          /* as parted->ranks, but each part in the order of usual arrivals */
    int count, segments; /* of lanes, and of each lane */
    const int *member;   /* [number] -> rank, of this part */
    int members, number; /* the latter of this rank; below `count`, it owns that lane */

    int speaker, first_told;
    unsigned char *heard; /* [number] what the ranks of this part told the owner */
    int tag;              /* what the owner tells */
};

/* Find the owners for this call. To be ended, whatever this returns. */
int coll_lane_owners_begin(struct lane_owners *owners, int segment_size);
void coll_lane_owners_end(struct lane_owners *owners);

/* A segment of a lane, and where this rank has it. */
struct block coll_lane_segment(const struct lane_owners *owners, int lane, int segment);
char *coll_lane_data(const struct lane_owners *owners, struct block block);

/* Where a segment of the own lane is in one of several rooms for it, which follow each other. */
char *coll_lane_room(const struct lane_owners *owners, char *rooms, int slot, int segment);

/* The owner of this rank's lane in the k-th other part. */
int coll_lane_peer(const struct lane_owners *owners, int k);

/*
 * Combine what the parts have for a segment of the own lane, in their order: this part's own is in
 * its place, those of the others are in rooms.
 */
int coll_lane_combine(const struct lane_owners *owners, char *rooms, int segment);

/* What a rank tells the owners of its part; what the owner in the speaking part tells. */
int coll_lane_own_tag(const struct lane_owners *owners);
void coll_lane_find_tag(struct lane_owners *owners);

/* The owner got the first segment of its lane from the k-th other part: that may be the speaker. */
void coll_lane_hear(struct lane_owners *owners, int k, int tag);

/* With its first result, each rank notes what a lane's owners tell: so all know the same. */
void coll_lane_learn(const struct lane_owners *owners, int lane, int tag);

static inline int coll_lane_owns(const struct lane_owners *owners) {
    return owners->number < owners->count;
}

static inline int coll_lane_part_size(const struct lane_owners *owners, int part) {
    return owners->parted->first[part + 1] - owners->parted->first[part];
}

#endif
