/*
 * An allreduce in lanes that go around a ring in each part. So an owner gets one message at a time
 * from the other owners of its part. Where no rank is late, the two ways around the ring overlap:
 * the sums of a segment leave while those of the next ones are made, so that the links between
 * parts are busy all the time. Where ranks are late, the early ones first combine all that they
 * have. A late rank is not on the ring: it would have to pass on results while it still sends its
 * operands.
 */
#include <stdlib.h>

#include "lane_owners.h"
#include "lane_rings.h"

/* Messages that may be on their way around the ring to a rank, and from it, at the same time. */
enum { IN_FLIGHT = 4 };

/* Messages with operands of a giver that may be on their way. */
enum { GIVEN_AT_A_TIME = 4 };

/* Segments by which results are behind sums: parts exchange those between them. */
enum { LAG = 2 };

/* What this rank has of a segment of a lane. */
enum state { OPERANDS, SUM, GIVEN, RESULT };

/* A message on the ring: a segment of a lane, for its sum or with its result. */
struct item {
    int sums;
    int lane, segment;
};

/* The messages from, or to, the neighbours. All ranks have them in the same order. */
struct stream {
    int backwards; /* lanes by which its first message is behind that of the outgoing ones */
    int slot, step;
    MPI_Request *requests; /* [IN_FLIGHT] */
    struct item items[IN_FLIGHT];
};

struct rings {
    struct lane_owners owners;
    int givers, parts; /* ranks of this part that own no lane; other parts */
    int lag;
    char *states; /* [lane][segment] */
    int *tags;    /* [lane] what its owners tell */
    struct stream in, out;

    /* Of the owner: room for its lane of every giver and of every other part, and for messages. */
    struct coll_elements room;
    char *crossing, *coming;
    int left[LANE_SEGMENTS];    /* messages with operands that have not come */
    int crossed[LANE_SEGMENTS]; /* messages from and to other parts that have not ended */
    int summed, done;           /* segments that the part, and that all parts have combined */

    /* Of a giver: messages with operands, and those under way; the next result of each lane. */
    int given, giving;
    int *next;

    /*
     * Requests, those of receives first. Of an owner: [segment][giver] its operands and the results
     * for it, and [segment][part]. Of a giver: [lane][segment] results and operands.
     */
    int receives, sends;
    MPI_Request *requests, *operands, *from, *get, *to, *results, *give;
};

static enum state state_of(const struct rings *rings, struct item item) {
    return (enum state)rings->states[item.lane * rings->owners.segments + item.segment];
}

static void set_state(const struct rings *rings, struct item item, enum state state) {
    rings->states[item.lane * rings->owners.segments + item.segment] = (char)state;
}

static int around(int number, int size) {
    return (number % size + size) % size;
}

/*
 * The next message of a stream. In a slot, the sums of one segment go around the ring of the
 * owners, and then the results of an earlier one. Returns whether there is one.
 */
static int look(const struct rings *rings, struct stream *stream, struct item *item) {
    const struct lane_owners *owners = &rings->owners;
    const int behind = owners->number - stream->backwards, steps = owners->count - 1;
    if (!coll_lane_owns(owners))
        return 0;
    for (; stream->slot < owners->segments + rings->lag; ++stream->slot, stream->step = 0) {
        const int sums = stream->slot < owners->segments ? steps : 0;
        const int results = stream->slot < rings->lag ? 0 : steps;
        if (stream->step == sums + results)
            continue;
        const int is_sum = stream->step < sums;
        const int back = is_sum ? stream->step + 1 : stream->step - sums;
        item->sums = is_sum;
        item->lane = around(behind - back, owners->count);
        item->segment = is_sum ? stream->slot : stream->slot - rings->lag;
        return 1;
    }
    return 0;
}

/* Whether a message can leave: the first one for a sum has this rank's own operands only. */
static int can_leave(const struct rings *rings, struct item item) {
    const struct lane_owners *owners = &rings->owners;
    if (item.sums && item.lane == around(owners->number - 1, owners->count))
        return 1;
    return state_of(rings, item) == (item.sums ? SUM : RESULT);
}

/* Whether it can come: a result overwrites what has to be sent before. */
static int can_come(const struct rings *rings, struct item item) {
    return item.sums || state_of(rings, item) == GIVEN;
}

/* The rank so far away on the ring. */
static int neighbour(const struct rings *rings, int distance) {
    const struct lane_owners *owners = &rings->owners;
    return owners->member[around(owners->number + distance, owners->count)];
}

/* The most elements of a segment. */
static MPI_Aint longest_segment(const struct lane_owners *owners) {
    const MPI_Aint lane = owners->call->recv_count / owners->count + 1;
    return lane / owners->segments + 1;
}

static char *room_for_coming(const struct rings *rings, int which) {
    const struct lane_owners *owners = &rings->owners;
    return coll_element(owners->call, rings->coming, which * longest_segment(owners));
}

static int receive_item(const struct rings *rings, struct item item, int which) {
    const struct lane_owners *owners = &rings->owners;
    const struct block block = coll_lane_segment(owners, item.lane, item.segment);
    char *data = item.sums ? room_for_coming(rings, which) : coll_lane_data(owners, block);
    return PMPI_Irecv(data, block.count, owners->call->recv_type, neighbour(rings, -1), MPI_ANY_TAG,
                      owners->cc->comm, &rings->in.requests[which]);
}

static int send_item(const struct rings *rings, struct item item, int which) {
    const struct lane_owners *owners = &rings->owners;
    const struct block block = coll_lane_segment(owners, item.lane, item.segment);
    const int tag = item.sums ? arrival_tag(0, 0) : rings->tags[item.lane];
    return PMPI_Isend(coll_lane_data(owners, block), block.count, owners->call->recv_type,
                      neighbour(rings, 1), tag, owners->cc->comm, &rings->out.requests[which]);
}

/* Begin as many messages of the ring as can be, in their order. */
static int go_on(struct rings *rings) {
    struct item item;
    for (int i = 0; i < IN_FLIGHT; ++i) {
        if (rings->in.requests[i] == MPI_REQUEST_NULL && look(rings, &rings->in, &item) &&
            can_come(rings, item)) {
            rings->in.items[i] = item;
            ++rings->in.step;
            COLL_TRY(receive_item(rings, item, i));
        }
    }
    for (int i = 0; i < IN_FLIGHT; ++i) {
        if (rings->out.requests[i] == MPI_REQUEST_NULL && look(rings, &rings->out, &item) &&
            can_leave(rings, item)) {
            rings->out.items[i] = item;
            ++rings->out.step;
            COLL_TRY(send_item(rings, item, i));
        }
    }
    return MPI_SUCCESS;
}

/* The owner lets come what late ranks and other parts have for its lane. */
static int expect(struct rings *rings) {
    const struct lane_owners *owners = &rings->owners;
    for (int s = 0; s < owners->segments; ++s) {
        const int count = coll_lane_segment(owners, owners->number, s).count;
        for (int i = 0; i < rings->givers; ++i)
            COLL_TRY(PMPI_Irecv(coll_lane_room(owners, rings->room.data, i, s), count,
                                owners->call->recv_type, owners->member[owners->count + i],
                                MPI_ANY_TAG, owners->cc->comm,
                                &rings->operands[s * rings->givers + i]));
        for (int i = 0; i < rings->parts; ++i)
            COLL_TRY(PMPI_Irecv(coll_lane_room(owners, rings->crossing, i, s), count,
                                owners->call->recv_type, coll_lane_peer(owners, i), MPI_ANY_TAG,
                                owners->cc->comm, &rings->from[s * rings->parts + i]));
        rings->left[s] = rings->givers + (owners->count > 1);
        rings->crossed[s] = 2 * rings->parts;
    }
    return MPI_SUCCESS;
}

/*
 * A rank without a lane sends each lane to its owner, one segment of all lanes after the other, and
 * begins with another lane on each rank. A few messages are on their way at a time, and end when
 * they have arrived: else some lanes would get ahead, and the ring waits for all.
 */
static int give(struct rings *rings) {
    const struct lane_owners *owners = &rings->owners;
    const int tag = coll_lane_own_tag(owners);
    for (; rings->given < owners->count * owners->segments && rings->giving < GIVEN_AT_A_TIME;
         ++rings->given, ++rings->giving) {
        const int s = rings->given / owners->count;
        const int lane = (owners->number + rings->given) % owners->count;
        const struct block block = coll_lane_segment(owners, lane, s);
        COLL_TRY(PMPI_Issend(coll_lane_data(owners, block), block.count, owners->call->recv_type,
                             owners->member[lane], tag, owners->cc->comm,
                             &rings->give[lane * owners->segments + s]));
    }
    return MPI_SUCCESS;
}

/* The part has combined a segment of the own lane: send it to the owners in other parts. */
static int cross(struct rings *rings, int s) {
    struct lane_owners *owners = &rings->owners;
    const struct block block = coll_lane_segment(owners, owners->number, s);
    if (s == 0)
        coll_lane_find_tag(owners);
    for (int i = 0; i < rings->parts; ++i)
        COLL_TRY(PMPI_Isend(coll_lane_data(owners, block), block.count, owners->call->recv_type,
                            coll_lane_peer(owners, i), owners->tag, owners->cc->comm,
                            &rings->to[s * rings->parts + i]));
    return MPI_SUCCESS;
}

/* All parts have combined a segment of the own lane: its result goes to late ranks, too. */
static int finish(struct rings *rings, int s) {
    const struct lane_owners *owners = &rings->owners;
    const struct block block = coll_lane_segment(owners, owners->number, s);
    COLL_TRY(coll_lane_combine(owners, rings->crossing, s));
    for (int i = 0; i < rings->givers; ++i)
        COLL_TRY(PMPI_Isend(coll_lane_data(owners, block), block.count, owners->call->recv_type,
                            owners->member[owners->count + i], owners->tag, owners->cc->comm,
                            &rings->results[s * rings->givers + i]));
    if (s == 0) {
        rings->tags[owners->number] = owners->tag;
        coll_lane_learn(owners, owners->number, owners->tag);
    }
    set_state(rings, (struct item){0, owners->number, s}, RESULT);
    return MPI_SUCCESS;
}

/* Go on with the own lane as far as it is; segments stay in order, as receivers expect them. */
static int advance(struct rings *rings) {
    const int segments = rings->owners.segments;
    for (; rings->summed < segments && rings->left[rings->summed] == 0; ++rings->summed)
        COLL_TRY(cross(rings, rings->summed));
    for (; rings->done < rings->summed && rings->crossed[rings->done] == 0; ++rings->done)
        COLL_TRY(finish(rings, rings->done));
    return MPI_SUCCESS;
}

/* Combine what came for a segment with what is here. */
static int combine(const struct rings *rings, char *theirs, int lane, int segment) {
    const struct lane_owners *owners = &rings->owners;
    const struct block block = coll_lane_segment(owners, lane, segment);
    return coll_fold(owners->call, owners->cc, theirs, coll_lane_data(owners, block), block.count,
                     1);
}

/* A message came around the ring. */
static int handle_in(struct rings *rings, int which, int tag) {
    const struct item item = rings->in.items[which];
    if (item.sums) {
        COLL_TRY(combine(rings, room_for_coming(rings, which), item.lane, item.segment));
        set_state(rings, item, SUM);
        rings->left[item.segment] -= item.lane == rings->owners.number;
        return MPI_SUCCESS;
    }
    if (item.segment == 0) {
        rings->tags[item.lane] = tag;
        coll_lane_learn(&rings->owners, item.lane, tag);
    }
    set_state(rings, item, RESULT);
    return MPI_SUCCESS;
}

/* The operands of a giver for a segment of the own lane have come. */
static int handle_operands(struct rings *rings, int which, int tag) {
    struct lane_owners *owners = &rings->owners;
    const int s = which / rings->givers, giver = which % rings->givers;
    if (s == 0)
        owners->heard[owners->count + giver] = (unsigned char)arrival_one(tag);
    --rings->left[s];
    return combine(rings, coll_lane_room(owners, rings->room.data, giver, s), owners->number, s);
}

/* A message has been sent around the ring. */
static void handle_out(const struct rings *rings, struct item item) {
    if (item.sums)
        set_state(rings, item, GIVEN);
}

/* A giver has sent a segment: results of the lane may come as far as all before them were sent. */
static int handle_given(struct rings *rings, int which) {
    const struct lane_owners *owners = &rings->owners;
    const int lane = which / owners->segments;
    set_state(rings, (struct item){1, lane, which % owners->segments}, GIVEN);
    for (; rings->next[lane] < owners->segments; ++rings->next[lane]) {
        const int s = rings->next[lane];
        const struct block block = coll_lane_segment(owners, lane, s);
        if (state_of(rings, (struct item){1, lane, s}) != GIVEN)
            break;
        COLL_TRY(PMPI_Irecv(coll_lane_data(owners, block), block.count, owners->call->recv_type,
                            owners->member[lane], MPI_ANY_TAG, owners->cc->comm,
                            &rings->get[lane * owners->segments + s]));
    }
    --rings->giving;
    return give(rings);
}

/* A message of a giver has ended. */
static int handle_giver(struct rings *rings, const MPI_Request *request, int tag) {
    const int segments = rings->owners.segments;
    if (request >= rings->give)
        return handle_given(rings, (int)(request - rings->give));
    const int which = (int)(request - rings->get);
    if (which % segments == 0)
        coll_lane_learn(&rings->owners, which / segments, tag);
    return MPI_SUCCESS;
}

/* A message of an owner has ended. */
static int handle_owner(struct rings *rings, const MPI_Request *request, int tag) {
    if (request >= rings->results)
        return MPI_SUCCESS;
    if (request >= rings->to) {
        --rings->crossed[(request - rings->to) / rings->parts];
    } else if (request >= rings->out.requests) {
        handle_out(rings, rings->out.items[request - rings->out.requests]);
    } else if (request >= rings->from) {
        const int which = (int)(request - rings->from), s = which / rings->parts;
        if (s == 0)
            coll_lane_hear(&rings->owners, which % rings->parts, tag);
        --rings->crossed[s];
    } else if (request >= rings->operands) {
        COLL_TRY(handle_operands(rings, (int)(request - rings->operands), tag));
    } else {
        COLL_TRY(handle_in(rings, (int)(request - rings->in.requests), tag));
    }
    return advance(rings);
}

static int run_rings(struct rings *rings) {
    if (coll_lane_owns(&rings->owners)) {
        COLL_TRY(expect(rings));
        COLL_TRY(advance(rings));
    } else {
        COLL_TRY(give(rings));
    }
    for (;;) {
        MPI_Status status;
        int which;
        COLL_TRY(go_on(rings));
        COLL_TRY(PMPI_Waitany(rings->receives + rings->sends, rings->requests, &which, &status));
        if (which == MPI_UNDEFINED)
            return MPI_SUCCESS;
        const MPI_Request *request = &rings->requests[which];
        COLL_TRY(coll_lane_owns(&rings->owners) ? handle_owner(rings, request, status.MPI_TAG)
                                                : handle_giver(rings, request, status.MPI_TAG));
    }
}

static int make_requests(struct rings *rings) {
    const struct lane_owners *owners = &rings->owners;
    const int s = owners->segments, owns = coll_lane_owns(owners);
    const int giving = owns ? s * rings->givers : 0, crossing = owns ? s * rings->parts : 0;
    const int given = owns ? 0 : s * owners->count;
    rings->receives = IN_FLIGHT + giving + crossing + given;
    rings->sends = IN_FLIGHT + crossing + giving + given;
    const int all = rings->receives + rings->sends;
    rings->requests = malloc((size_t)all * sizeof *rings->requests);
    if (rings->requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < all; ++i)
        rings->requests[i] = MPI_REQUEST_NULL;
    rings->in.requests = rings->requests;
    rings->operands = rings->in.requests + IN_FLIGHT;
    rings->from = rings->operands + giving;
    rings->get = rings->from + crossing;
    rings->out.requests = rings->get + given;
    rings->to = rings->out.requests + IN_FLIGHT;
    rings->results = rings->to + crossing;
    rings->give = rings->results + giving;
    return MPI_SUCCESS;
}

static int make_room(struct rings *rings) {
    const struct lane_owners *owners = &rings->owners;
    if (!coll_lane_owns(owners))
        return MPI_SUCCESS;
    const MPI_Count lane = coll_vector_block(owners->call, owners->count, owners->number).count;
    const MPI_Count kept = (rings->givers + rings->parts) * lane;
    const MPI_Count coming = IN_FLIGHT * longest_segment(owners);
    COLL_TRY(coll_elements_for(owners->call, kept + coming, &rings->room));
    rings->crossing =
        coll_element(owners->call, rings->room.data, (MPI_Aint)(rings->givers * lane));
    rings->coming = coll_element(owners->call, rings->room.data, (MPI_Aint)kept);
    return MPI_SUCCESS;
}

/* Sums come first of all segments where some rank owns no lane: it may be late. */
static int lag_of(const struct lane_owners *owners) {
    for (int part = 0; part < owners->parted->parts; ++part) {
        if (coll_lane_part_size(owners, part) > owners->count)
            return owners->segments;
    }
    return LAG;
}

static int with_owners(struct rings *rings) {
    const struct lane_owners *owners = &rings->owners;
    rings->givers = owners->members - owners->count;
    rings->parts = owners->parted->parts - 1;
    rings->lag = lag_of(owners);
    rings->states = calloc((size_t)owners->count * (size_t)owners->segments, 1);
    rings->tags = calloc((size_t)owners->count, sizeof *rings->tags);
    rings->next = calloc((size_t)owners->count, sizeof *rings->next);
    if (rings->states == NULL || rings->tags == NULL || rings->next == NULL)
        return MPI_ERR_NO_MEM;
    COLL_TRY(make_requests(rings));
    COLL_TRY(make_room(rings));
    const int error = run_rings(rings);
    if (error != MPI_SUCCESS)
        coll_abandon(rings->requests, rings->receives, rings->sends);
    return error;
}

int coll_lane_rings_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                              const struct coll_parted *parted, int segment_size) {
    struct rings rings = {.owners = {.call = call, .cc = cc, .parted = parted}};
    rings.in.backwards = 1;
    int error = coll_lane_owners_begin(&rings.owners, segment_size);
    if (error == MPI_SUCCESS)
        error = with_owners(&rings);
    coll_lane_owners_end(&rings.owners);
    free(rings.states);
    free(rings.tags);
    free(rings.next);
    free(rings.requests);
    free(rings.room.memory);
    return error;
}
