/* Lanes of an allreduce: how the message is cut, and which ranks own the lanes in each part. */
#include <stdlib.h>

#include "lane_owners.h"

/* The least bytes of a lane: more and shorter messages would only cost time. */
enum { LANE_LEAST = 256 };

struct block coll_lane_segment(const struct lane_owners *owners, int lane, int segment) {
    const struct block block = coll_vector_block(owners->call, owners->count, lane);
    const MPI_Aint start = (MPI_Aint)block.count * segment / owners->segments;
    const MPI_Aint end = (MPI_Aint)block.count * (segment + 1) / owners->segments;
    return (struct block){block.first + start, (int)(end - start)};
}

char *coll_lane_data(const struct lane_owners *owners, struct block block) {
    return coll_element(owners->call, owners->call->recv, block.first);
}

char *coll_lane_room(const struct lane_owners *owners, char *rooms, int slot, int segment) {
    const struct block lane = coll_vector_block(owners->call, owners->count, owners->number);
    const MPI_Aint before = coll_lane_segment(owners, owners->number, segment).first - lane.first;
    return coll_element(owners->call, rooms, (MPI_Aint)slot * lane.count + before);
}

/* Other parts leave out this one. */
static int other_part(const struct lane_owners *owners, int k) {
    return k < owners->parted->part ? k : k + 1;
}

static int rank_in(const struct lane_owners *owners, int part, int number) {
    return owners->order[owners->parted->first[part] + number];
}

int coll_lane_peer(const struct lane_owners *owners, int k) {
    return rank_in(owners, other_part(owners, k), owners->number);
}

static char *operands_of(const struct lane_owners *owners, char *rooms, int part, int segment) {
    const int own = owners->parted->part;
    if (part == own)
        return coll_lane_data(owners, coll_lane_segment(owners, owners->number, segment));
    return coll_lane_room(owners, rooms, part < own ? part : part - 1, segment);
}

int coll_lane_combine(const struct lane_owners *owners, char *rooms, int segment) {
    const struct block block = coll_lane_segment(owners, owners->number, segment);
    const int last = owners->parted->parts - 1;
    char *result = operands_of(owners, rooms, last, segment);
    char *target = coll_lane_data(owners, block);
    for (int part = last - 1; part >= 0; --part)
        COLL_TRY(coll_fold(owners->call, owners->cc, operands_of(owners, rooms, part, segment),
                           result, block.count, 1));
    if (result == target)
        return MPI_SUCCESS;
    return coll_copy_elements(owners->call, owners->cc, result, target, block.count);
}

int coll_lane_own_tag(const struct lane_owners *owners) {
    return arrival_tag(coll_learned_own(owners->arrivals), 0);
}

/* The ranks, by their numbers in the speaking part, whose levels the owners of a lane tell. */
static int told_by(const struct lane_owners *owners, int lane, int which) {
    return owners->first_told + which * owners->count + lane;
}

void coll_lane_find_tag(struct lane_owners *owners) {
    int levels[2] = {0, 0};
    if (owners->speaker != owners->parted->part)
        return;
    owners->heard[owners->number] = (unsigned char)coll_learned_own(owners->arrivals);
    for (int which = 0; which < 2; ++which) {
        const int number = told_by(owners, owners->number, which);
        if (number < owners->members)
            levels[which] = owners->heard[number];
    }
    owners->tag = arrival_tag(levels[0], levels[1]);
}

void coll_lane_hear(struct lane_owners *owners, int k, int tag) {
    if (other_part(owners, k) == owners->speaker)
        owners->tag = tag;
}

void coll_lane_learn(const struct lane_owners *owners, int lane, int tag) {
    const int levels[] = {arrival_one(tag), arrival_other(tag)};
    coll_learned_complete(owners->arrivals);
    for (int which = 0; which < 2; ++which) {
        const int number = told_by(owners, lane, which);
        if (number < coll_lane_part_size(owners, owners->speaker))
            coll_learned_note(owners->arrivals, rank_in(owners, owners->speaker, number),
                              levels[which]);
    }
}

/* The most lanes for which the message is long enough. */
static int most_lanes(const struct lane_owners *owners) {
    const MPI_Aint most = owners->call->bytes / LANE_LEAST;
    return most < 1 ? 1 : most < owners->cc->size ? (int)most : owners->cc->size;
}

/* Which part tells its levels in this call, and which of them. */
static void find_speaker(struct lane_owners *owners) {
    int most = 0;
    for (int part = 0; part < owners->parted->parts; ++part) {
        const int size = coll_lane_part_size(owners, part);
        most = size > most ? size : most;
    }
    const unsigned rounds = (unsigned)((most + 2 * owners->count - 1) / (2 * owners->count));
    const unsigned turns = owners->arrivals == NULL ? 0 : owners->arrivals->turns++;
    const unsigned parts = (unsigned)owners->parted->parts;
    owners->speaker = (int)(turns % parts);
    owners->first_told = (int)(turns / parts % rounds) * 2 * owners->count;
    owners->tag = arrival_tag(0, 0);
}

/* Ranks of each part in order, and the number of lanes. */
static void find_order(struct lane_owners *owners) {
    const struct coll_parted *parted = owners->parted;
    owners->count = most_lanes(owners);
    for (int i = 0; i < owners->cc->size; ++i)
        owners->order[i] = parted->ranks[i];
    for (int part = 0; part < parted->parts; ++part) {
        int *ranks = owners->order + parted->first[part];
        const int size = coll_lane_part_size(owners, part);
        coll_learned_sort(owners->arrivals, ranks, size);
        const int early = size - coll_learned_late(owners->arrivals, ranks, size);
        owners->count = early < owners->count ? early : owners->count;
    }
    owners->member = owners->order + parted->first[parted->part];
    owners->members = coll_lane_part_size(owners, parted->part);
    while (owners->member[owners->number] != owners->cc->rank)
        ++owners->number;
}

static void find_segments(struct lane_owners *owners, int segment_size) {
    const MPI_Aint bytes = owners->call->bytes / owners->count;
    const MPI_Aint wanted = (bytes + segment_size - 1) / segment_size;
    owners->segments = wanted < 1 ? 1 : wanted < LANE_SEGMENTS ? (int)wanted : LANE_SEGMENTS;
}

int coll_lane_owners_begin(struct lane_owners *owners, int segment_size) {
    const struct coll_parted *parted = owners->parted;
    owners->arrivals = coll_learned_begin(owners->call, owners->cc);
    owners->order = malloc((size_t)owners->cc->size * sizeof *owners->order);
    owners->heard =
        calloc((size_t)coll_lane_part_size(owners, parted->part), sizeof *owners->heard);
    if (owners->order == NULL || owners->heard == NULL)
        return MPI_ERR_NO_MEM;
    find_order(owners);
    find_speaker(owners);
    find_segments(owners, segment_size);
    return MPI_SUCCESS;
}

void coll_lane_owners_end(struct lane_owners *owners) {
    if (owners->order != NULL && owners->heard != NULL)
        coll_learned_end(owners->arrivals);
    free(owners->order);
    free(owners->heard);
}
