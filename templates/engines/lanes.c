/*
 * An allreduce in lanes. What is left to do when the last rank comes is to send its own operands to
 * the owners, which have combined those of all others, and to get the result: each once. Operands
 * of a part meet in the order in which they come. Each lane is combined once in each part, and then
 * over the parts in their order, so that all ranks get the same bits.
 */
#include <sched.h>
#include <stdlib.h>

#include "learned_order.h"
#include "lanes.h"
#include "vector_blocks.h"

/* The least bytes of a lane: more and shorter messages would only cost time. */
enum { LANE_LEAST = 256 };

/* The most segments of a lane, and the most messages that a rank takes at a time. */
enum { SEGMENTS_MOST = 32, TAKEN_AT_A_TIME = 2 };

struct lanes {
    const struct coll_call *call;
    const struct coll_comm *cc;
    const struct coll_parted *parted;
    struct learned_order *arrivals;
    int *order;          /* as parted->ranks, but each part in the order of usual arrivals */
    int count, segments; /* of lanes, and of each lane */
    const int *member;   /* [number] -> rank, of this part */
    int members, number; /* the latter of this rank; below `count`, it owns that lane */

    /* Which levels the messages tell in this call: of one part's ranks. */
    int speaker, first_told;
    unsigned char *heard; /* [number] what the ranks of this part told the owner */
    int tag;              /* what the owner tells */

    /* Of the owner: room for its lane of every other rank of the part, and of every other part. */
    struct coll_elements room;
    int left[SEGMENTS_MOST];    /* ranks whose operands have not come */
    int crossed[SEGMENTS_MOST]; /* messages from and to other parts that have not ended */
    int reduced, done;          /* segments that the part, and that all parts have combined */

    /*
     * Requests, [segment] of each: in from ranks, from and to other parts, out to ranks; and
     * [lane][segment] of the lanes, first to send one and then to receive it.
     */
    int requests;
    MPI_Request *request, *in, *from, *to, *out, *lane;
    int turn;    /* the rank of this part whose message is next */
    int *taken;  /* [number] messages from there whose receives have begun */
    int taking;  /* receives under way: few, as messages would meet on this rank's link */
    int untaken; /* receives that have not begun */
    char *sent;  /* [lane][segment] */
};

static int parts_of(const struct lanes *lanes) {
    return lanes->parted->parts;
}

static int owns(const struct lanes *lanes) {
    return lanes->number < lanes->count;
}

static struct block segment_of(const struct lanes *lanes, int lane, int segment) {
    const struct block block = coll_vector_block(lanes->call, lanes->count, lane);
    const MPI_Aint start = (MPI_Aint)block.count * segment / lanes->segments;
    const MPI_Aint end = (MPI_Aint)block.count * (segment + 1) / lanes->segments;
    return (struct block){block.first + start, (int)(end - start)};
}

static char *data_of(const struct lanes *lanes, struct block block) {
    return coll_element(lanes->call, lanes->call->recv, block.first);
}

/* Where the operands of another rank, or part, for the own lane are: ranks come first. */
static char *room_for(const struct lanes *lanes, int slot, int segment) {
    const struct block lane = coll_vector_block(lanes->call, lanes->count, lanes->number);
    const MPI_Aint before = segment_of(lanes, lanes->number, segment).first - lane.first;
    return coll_element(lanes->call, lanes->room.data, (MPI_Aint)slot * lane.count + before);
}

/* Slots leave out this rank, and this part. */
static int slot_of(int number, int own) {
    return number < own ? number : number - 1;
}

static int number_of(int slot, int own) {
    return slot < own ? slot : slot + 1;
}

static int own_part(const struct lanes *lanes) {
    return lanes->parted->part;
}

static int rank_in(const struct lanes *lanes, int part, int number) {
    return lanes->order[lanes->parted->first[part] + number];
}

static int size_of(const struct lanes *lanes, int part) {
    return lanes->parted->first[part + 1] - lanes->parted->first[part];
}

/* Send a segment of a lane to, or let it come from, a rank; data goes where it says. */
static int send(const struct lanes *lanes, char *data, int count, int to, int tag,
                MPI_Request *request) {
    return PMPI_Isend(data, count, lanes->call->recv_type, to, tag, lanes->cc->comm, request);
}

static int receive(const struct lanes *lanes, char *data, int count, int from,
                   MPI_Request *request) {
    return PMPI_Irecv(data, count, lanes->call->recv_type, from, MPI_ANY_TAG, lanes->cc->comm,
                      request);
}

/* The owner lets come what other parts have for its lane; what ranks have is taken one by one. */
static int expect(struct lanes *lanes) {
    const int others = lanes->members - 1, parts = parts_of(lanes) - 1;
    for (int s = 0; s < lanes->segments; ++s) {
        const int count = segment_of(lanes, lanes->number, s).count;
        for (int i = 0; i < parts; ++i)
            COLL_TRY(receive(lanes, room_for(lanes, others + i, s), count,
                             rank_in(lanes, number_of(i, own_part(lanes)), lanes->number),
                             &lanes->from[s * parts + i]));
        lanes->left[s] = others;
        lanes->crossed[s] = 2 * parts;
    }
    return MPI_SUCCESS;
}

/* Send all lanes to their owners, each rank beginning with the one after it. */
static int give(struct lanes *lanes) {
    const int tag = arrival_tag(coll_learned_own(lanes->arrivals), 0);
    for (int s = 0; s < lanes->segments; ++s) {
        for (int i = 1; i <= lanes->count; ++i) {
            const int lane = (lanes->number + i) % lanes->count;
            const struct block block = segment_of(lanes, lane, s);
            if (lane != lanes->number)
                COLL_TRY(send(lanes, data_of(lanes, block), block.count, lanes->member[lane], tag,
                              &lanes->lane[lane * lanes->segments + s]));
        }
    }
    return MPI_SUCCESS;
}

/* The ranks, by their numbers in the speaking part, whose levels the owners of a lane tell. */
static int told_by(const struct lanes *lanes, int lane, int which) {
    return lanes->first_told + which * lanes->count + lane;
}

/* What the owner in the speaking part has to tell. */
static void find_tag(struct lanes *lanes) {
    int levels[2] = {0, 0};
    lanes->heard[lanes->number] = (unsigned char)coll_learned_own(lanes->arrivals);
    for (int which = 0; which < 2; ++which) {
        const int number = told_by(lanes, lanes->number, which);
        if (number < lanes->members)
            levels[which] = lanes->heard[number];
    }
    lanes->tag = arrival_tag(levels[0], levels[1]);
}

/* All ranks note what the owners of a lane tell, and so all know the same. */
static void learn(struct lanes *lanes, int lane, int tag) {
    const int levels[] = {arrival_one(tag), arrival_other(tag)};
    for (int which = 0; which < 2; ++which) {
        const int number = told_by(lanes, lane, which);
        if (number < size_of(lanes, lanes->speaker))
            coll_learned_note(lanes->arrivals, rank_in(lanes, lanes->speaker, number),
                              levels[which]);
    }
}

/* The part has combined a segment: send it to the owners in other parts. */
static int cross(struct lanes *lanes, int s) {
    const int parts = parts_of(lanes) - 1;
    const struct block block = segment_of(lanes, lanes->number, s);
    if (s == 0 && lanes->speaker == own_part(lanes))
        find_tag(lanes);
    for (int i = 0; i < parts; ++i)
        COLL_TRY(send(lanes, data_of(lanes, block), block.count,
                      rank_in(lanes, number_of(i, own_part(lanes)), lanes->number), lanes->tag,
                      &lanes->to[s * parts + i]));
    return MPI_SUCCESS;
}

static char *operands_of(const struct lanes *lanes, int part, int s) {
    if (part == own_part(lanes))
        return data_of(lanes, segment_of(lanes, lanes->number, s));
    return room_for(lanes, lanes->members - 1 + slot_of(part, own_part(lanes)), s);
}

/* Combine what the parts have, in their order, and send the result to the ranks of this part. */
static int finish(struct lanes *lanes, int s) {
    const struct block block = segment_of(lanes, lanes->number, s);
    const int others = lanes->members - 1, last = parts_of(lanes) - 1;
    char *result = operands_of(lanes, last, s), *target = data_of(lanes, block);
    for (int part = last - 1; part >= 0; --part)
        COLL_TRY(
            coll_fold(lanes->call, lanes->cc, operands_of(lanes, part, s), result, block.count, 1));
    if (result != target)
        COLL_TRY(coll_copy_elements(lanes->call, lanes->cc, result, target, block.count));
    if (s == 0)
        learn(lanes, lanes->number, lanes->tag);
    for (int i = 0; i < others; ++i) {
        const int number = (lanes->number + 1 + i) % lanes->members;
        COLL_TRY(send(lanes, target, block.count, lanes->member[number], lanes->tag,
                      &lanes->out[s * others + i]));
    }
    return MPI_SUCCESS;
}

/* Go on with the own lane as far as it is; segments stay in order, as receivers expect them. */
static int advance(struct lanes *lanes) {
    for (; lanes->reduced < lanes->segments && lanes->left[lanes->reduced] == 0; ++lanes->reduced)
        COLL_TRY(cross(lanes, lanes->reduced));
    for (; lanes->done < lanes->reduced && lanes->crossed[lanes->done] == 0; ++lanes->done)
        COLL_TRY(finish(lanes, lanes->done));
    return MPI_SUCCESS;
}

/* A segment of another lane has been sent, or its result has come. */
static int handle_lane(struct lanes *lanes, int which, int tag) {
    const int lane = which / lanes->segments, s = which % lanes->segments;
    if (!lanes->sent[which]) {
        lanes->sent[which] = 1;
        return MPI_SUCCESS;
    }
    --lanes->taking;
    if (s == 0)
        learn(lanes, lane, tag);
    return MPI_SUCCESS;
}

/* The operands of a rank for a segment of the own lane have come. */
static int handle_operands(struct lanes *lanes, int which, int tag) {
    const int others = lanes->members - 1, s = which / others, i = which % others;
    const struct block block = segment_of(lanes, lanes->number, s);
    if (s == 0)
        lanes->heard[number_of(i, lanes->number)] = (unsigned char)arrival_one(tag);
    --lanes->taking;
    --lanes->left[s];
    return coll_fold(lanes->call, lanes->cc, room_for(lanes, i, s), data_of(lanes, block),
                     block.count, 1);
}

/* A message from, or to, another part has ended. */
static void handle_crossing(struct lanes *lanes, const MPI_Request *request, int tag) {
    const int parts = parts_of(lanes) - 1;
    const int is_in = request < lanes->to;
    const int which = (int)(request - (is_in ? lanes->from : lanes->to));
    const int s = which / parts;
    if (is_in && s == 0 && number_of(which % parts, own_part(lanes)) == lanes->speaker)
        lanes->tag = tag;
    --lanes->crossed[s];
}

static int handle(struct lanes *lanes, int which, int tag) {
    MPI_Request *request = lanes->request + which;
    if (request >= lanes->lane)
        return handle_lane(lanes, (int)(request - lanes->lane), tag);
    if (request >= lanes->out)
        return MPI_SUCCESS;
    if (request >= lanes->from)
        handle_crossing(lanes, request, tag);
    else
        COLL_TRY(handle_operands(lanes, (int)(request - lanes->in), tag));
    return advance(lanes);
}

/*
 * The next receive from a rank of this part: first its operands for the own lane, then the results
 * of the lane that it owns. NULL if there is none, or if what it overwrites is still being sent.
 */
static MPI_Request *next_from(const struct lanes *lanes, int number, char **data, int *count) {
    const int others = lanes->members - 1, s = lanes->taken[number];
    if (owns(lanes) && s < lanes->segments) {
        const int slot = slot_of(number, lanes->number);
        *data = room_for(lanes, slot, s);
        *count = segment_of(lanes, lanes->number, s).count;
        return &lanes->in[s * others + slot];
    }
    const int result = owns(lanes) ? s - lanes->segments : s;
    const int which = number * lanes->segments + result;
    if (number >= lanes->count || result == lanes->segments || !lanes->sent[which])
        return NULL;
    const struct block block = segment_of(lanes, number, result);
    *data = data_of(lanes, block);
    *count = block.count;
    return &lanes->lane[which];
}

/* Take what has come from ranks of this part, in turn, a few messages at a time. */
static int take(struct lanes *lanes) {
    for (int i = 0; i < lanes->members && lanes->taking < TAKEN_AT_A_TIME; ++i) {
        const int number = lanes->turn;
        char *data = NULL;
        int count = 0, is_there = 0;
        lanes->turn = (lanes->turn + 1) % lanes->members;
        MPI_Request *request =
            number == lanes->number ? NULL : next_from(lanes, number, &data, &count);
        if (request != NULL)
            COLL_TRY(PMPI_Iprobe(lanes->member[number], MPI_ANY_TAG, lanes->cc->comm, &is_there,
                                 MPI_STATUS_IGNORE));
        if (!is_there)
            continue;
        COLL_TRY(receive(lanes, data, count, lanes->member[number], request));
        ++lanes->taken[number];
        ++lanes->taking;
        --lanes->untaken;
    }
    return MPI_SUCCESS;
}

/* Wait for a message; as long as not all receives have begun, only look. */
static int find_ended(struct lanes *lanes, int *which, MPI_Status *status) {
    int found;
    if (lanes->untaken == 0)
        return PMPI_Waitany(lanes->requests, lanes->request, which, status);
    COLL_TRY(PMPI_Testany(lanes->requests, lanes->request, which, &found, status));
    if (!found)
        *which = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int run_lanes(struct lanes *lanes) {
    if (owns(lanes))
        COLL_TRY(expect(lanes));
    COLL_TRY(give(lanes));
    if (owns(lanes))
        COLL_TRY(advance(lanes));
    for (;;) {
        const int before = lanes->untaken;
        MPI_Status status;
        int which;
        COLL_TRY(take(lanes));
        COLL_TRY(find_ended(lanes, &which, &status));
        if (which != MPI_UNDEFINED)
            COLL_TRY(handle(lanes, which, status.MPI_TAG));
        else if (lanes->untaken == 0)
            return MPI_SUCCESS;
        else if (lanes->untaken == before)
            sched_yield();
    }
}

/* The most lanes for which the message is long enough. */
static int most_lanes(const struct lanes *lanes) {
    const MPI_Aint most = lanes->call->bytes / LANE_LEAST;
    return most < 1 ? 1 : most < lanes->cc->size ? (int)most : lanes->cc->size;
}

/* Ranks of each part in order, the number of lanes, and which part tells its levels now. */
static void find_order(struct lanes *lanes) {
    const struct coll_parted *parted = lanes->parted;
    int most = 0;
    lanes->count = most_lanes(lanes);
    for (int i = 0; i < lanes->cc->size; ++i)
        lanes->order[i] = parted->ranks[i];
    for (int part = 0; part < parted->parts; ++part) {
        int *ranks = lanes->order + parted->first[part];
        const int size = size_of(lanes, part);
        coll_learned_sort(lanes->arrivals, ranks, size);
        const int early = size - coll_learned_late(lanes->arrivals, ranks, size);
        lanes->count = early < lanes->count ? early : lanes->count;
        most = size > most ? size : most;
    }
    lanes->member = lanes->order + parted->first[parted->part];
    lanes->members = size_of(lanes, parted->part);
    while (lanes->member[lanes->number] != lanes->cc->rank)
        ++lanes->number;
    const unsigned rounds = (unsigned)((most + 2 * lanes->count - 1) / (2 * lanes->count));
    const unsigned turns = lanes->arrivals == NULL ? 0 : lanes->arrivals->turns++;
    const unsigned parts = (unsigned)parted->parts;
    lanes->speaker = (int)(turns % parts);
    lanes->first_told = (int)(turns / parts % rounds) * 2 * lanes->count;
    lanes->tag = arrival_tag(0, 0);
}

static void find_segments(struct lanes *lanes, int segment_size) {
    const MPI_Aint bytes = lanes->call->bytes / lanes->count;
    const MPI_Aint wanted = (bytes + segment_size - 1) / segment_size;
    lanes->segments = wanted < 1 ? 1 : wanted < SEGMENTS_MOST ? (int)wanted : SEGMENTS_MOST;
}

static int make_requests(struct lanes *lanes) {
    const int s = lanes->segments, others = owns(lanes) ? lanes->members - 1 : 0;
    const int parts = owns(lanes) ? parts_of(lanes) - 1 : 0;
    lanes->requests = s * (2 * others + 2 * parts + lanes->count);
    lanes->request = malloc((size_t)lanes->requests * sizeof *lanes->request);
    if (lanes->request == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < lanes->requests; ++i)
        lanes->request[i] = MPI_REQUEST_NULL;
    lanes->in = lanes->request;
    lanes->from = lanes->in + s * others;
    lanes->to = lanes->from + s * parts;
    lanes->out = lanes->to + s * parts;
    lanes->lane = lanes->out + s * others;
    return MPI_SUCCESS;
}

/* After an error. A lane was sent first, then it is received. */
static void give_up(struct lanes *lanes) {
    coll_abandon(lanes->in, (int)(lanes->to - lanes->in), (int)(lanes->lane - lanes->to));
    for (int i = 0; i < lanes->count * lanes->segments; ++i)
        coll_abandon(&lanes->lane[i], lanes->sent[i], !lanes->sent[i]);
}

static int with_memory(struct lanes *lanes) {
    const MPI_Count slots = owns(lanes) ? lanes->members - 1 + parts_of(lanes) - 1 : 0;
    const int elements =
        owns(lanes) ? coll_vector_block(lanes->call, lanes->count, lanes->number).count : 0;
    lanes->heard = calloc((size_t)lanes->members, sizeof *lanes->heard);
    lanes->taken = calloc((size_t)lanes->members, sizeof *lanes->taken);
    lanes->sent = calloc((size_t)lanes->count * (size_t)lanes->segments, sizeof *lanes->sent);
    if (lanes->heard == NULL || lanes->taken == NULL || lanes->sent == NULL)
        return MPI_ERR_NO_MEM;
    lanes->turn = (lanes->number + 1) % lanes->members;
    lanes->untaken =
        lanes->segments * (owns(lanes) ? lanes->members - 1 + lanes->count - 1 : lanes->count);
    COLL_TRY(make_requests(lanes));
    COLL_TRY(coll_elements_for(lanes->call, slots * elements, &lanes->room));
    const int error = run_lanes(lanes);
    if (error != MPI_SUCCESS)
        give_up(lanes);
    return error;
}

int coll_lanes_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                         const struct coll_parted *parted, int segment_size) {
    struct lanes lanes = {
        .call = call, .cc = cc, .parted = parted, .arrivals = coll_learned_begin(call, cc)};
    lanes.order = malloc((size_t)cc->size * sizeof *lanes.order);
    int error = MPI_ERR_NO_MEM;
    if (lanes.order != NULL) {
        find_order(&lanes);
        find_segments(&lanes, segment_size);
        error = with_memory(&lanes);
        coll_learned_end(lanes.arrivals);
    }
    free(lanes.order);
    free(lanes.heard);
    free(lanes.taken);
    free(lanes.sent);
    free(lanes.request);
    free(lanes.room.memory);
    return error;
}
