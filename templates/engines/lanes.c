/*
 * An allreduce in lanes. What is left to do when the last rank comes is to send its own operands to
 * the owners, which have combined those of all others, and to get the result: each once. Operands
 * of a part meet in the order in which they come. Each lane is combined once in each part, and then
 * over the parts in their order, so that all ranks get the same bits.
 */
#include <sched.h>
#include <stdlib.h>

#include "lane_owners.h"
#include "lanes.h"

/* The most messages that a rank takes at a time. */
enum { TAKEN_AT_A_TIME = 2 };

struct lanes {
    struct lane_owners owners;
    int others, parts; /* ranks of this part, and parts, without the own one */

    /* Of the owner: room for its lane of every other rank of the part, and of every other part. */
    struct coll_elements room;
    char *crossing;
    int left[LANE_SEGMENTS];    /* ranks whose operands have not come */
    int crossed[LANE_SEGMENTS]; /* messages from and to other parts that have not ended */
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

/* Slots leave out this rank. */
static int slot_of(int number, int own) {
    return number < own ? number : number - 1;
}

static int number_of(int slot, int own) {
    return slot < own ? slot : slot + 1;
}

/* Send a segment of a lane to, or let it come from, a rank; data goes where it says. */
static int send(const struct lanes *lanes, char *data, int count, int to, int tag,
                MPI_Request *request) {
    const struct lane_owners *owners = &lanes->owners;
    return PMPI_Isend(data, count, owners->call->recv_type, to, tag, owners->cc->comm, request);
}

static int receive(const struct lanes *lanes, char *data, int count, int from,
                   MPI_Request *request) {
    const struct lane_owners *owners = &lanes->owners;
    return PMPI_Irecv(data, count, owners->call->recv_type, from, MPI_ANY_TAG, owners->cc->comm,
                      request);
}

/* The owner lets come what other parts have for its lane; what ranks have is taken one by one. */
static int expect(struct lanes *lanes) {
    const struct lane_owners *owners = &lanes->owners;
    const int parts = lanes->parts;
    for (int s = 0; s < owners->segments; ++s) {
        const int count = coll_lane_segment(owners, owners->number, s).count;
        for (int i = 0; i < parts; ++i)
            COLL_TRY(receive(lanes, coll_lane_room(owners, lanes->crossing, i, s), count,
                             coll_lane_peer(owners, i), &lanes->from[s * parts + i]));
        lanes->left[s] = lanes->others;
        lanes->crossed[s] = 2 * parts;
    }
    return MPI_SUCCESS;
}

/* Send all lanes to their owners, each rank beginning with the one after it. */
static int give(const struct lanes *lanes) {
    const struct lane_owners *owners = &lanes->owners;
    const int tag = coll_lane_own_tag(owners);
    for (int s = 0; s < owners->segments; ++s) {
        for (int i = 1; i <= owners->count; ++i) {
            const int lane = (owners->number + i) % owners->count;
            const struct block block = coll_lane_segment(owners, lane, s);
            if (lane != owners->number)
                COLL_TRY(send(lanes, coll_lane_data(owners, block), block.count,
                              owners->member[lane], tag,
                              &lanes->lane[lane * owners->segments + s]));
        }
    }
    return MPI_SUCCESS;
}

/* The part has combined a segment: send it to the owners in other parts. */
static int cross(struct lanes *lanes, int s) {
    struct lane_owners *owners = &lanes->owners;
    const struct block block = coll_lane_segment(owners, owners->number, s);
    if (s == 0)
        coll_lane_find_tag(owners);
    for (int i = 0; i < lanes->parts; ++i)
        COLL_TRY(send(lanes, coll_lane_data(owners, block), block.count, coll_lane_peer(owners, i),
                      owners->tag, &lanes->to[s * lanes->parts + i]));
    return MPI_SUCCESS;
}

/* Combine what the parts have, in their order, and send the result to the ranks of this part. */
static int finish(struct lanes *lanes, int s) {
    const struct lane_owners *owners = &lanes->owners;
    const struct block block = coll_lane_segment(owners, owners->number, s);
    COLL_TRY(coll_lane_combine(owners, lanes->crossing, s));
    if (s == 0)
        coll_lane_learn(owners, owners->number, owners->tag);
    for (int i = 0; i < lanes->others; ++i) {
        const int number = (owners->number + 1 + i) % owners->members;
        COLL_TRY(send(lanes, coll_lane_data(owners, block), block.count, owners->member[number],
                      owners->tag, &lanes->out[s * lanes->others + i]));
    }
    return MPI_SUCCESS;
}

/* Go on with the own lane as far as it is; segments stay in order, as receivers expect them. */
static int advance(struct lanes *lanes) {
    const int segments = lanes->owners.segments;
    for (; lanes->reduced < segments && lanes->left[lanes->reduced] == 0; ++lanes->reduced)
        COLL_TRY(cross(lanes, lanes->reduced));
    for (; lanes->done < lanes->reduced && lanes->crossed[lanes->done] == 0; ++lanes->done)
        COLL_TRY(finish(lanes, lanes->done));
    return MPI_SUCCESS;
}

/* A segment of another lane has been sent, or its result has come. */
static int handle_lane(struct lanes *lanes, int which, int tag) {
    const int segments = lanes->owners.segments;
    if (!lanes->sent[which]) {
        lanes->sent[which] = 1;
        return MPI_SUCCESS;
    }
    --lanes->taking;
    if (which % segments == 0)
        coll_lane_learn(&lanes->owners, which / segments, tag);
    return MPI_SUCCESS;
}

/* The operands of a rank for a segment of the own lane have come. */
static int handle_operands(struct lanes *lanes, int which, int tag) {
    struct lane_owners *owners = &lanes->owners;
    const int s = which / lanes->others, i = which % lanes->others;
    const struct block block = coll_lane_segment(owners, owners->number, s);
    if (s == 0)
        owners->heard[number_of(i, owners->number)] = (unsigned char)arrival_one(tag);
    --lanes->taking;
    --lanes->left[s];
    return coll_fold(owners->call, owners->cc, coll_lane_room(owners, lanes->room.data, i, s),
                     coll_lane_data(owners, block), block.count, 1);
}

/* A message from, or to, another part has ended. */
static void handle_crossing(struct lanes *lanes, const MPI_Request *request, int tag) {
    const int is_in = request < lanes->to;
    const int which = (int)(request - (is_in ? lanes->from : lanes->to));
    const int s = which / lanes->parts;
    if (is_in && s == 0)
        coll_lane_hear(&lanes->owners, which % lanes->parts, tag);
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
    const struct lane_owners *owners = &lanes->owners;
    const int s = lanes->taken[number];
    if (coll_lane_owns(owners) && s < owners->segments) {
        const int slot = slot_of(number, owners->number);
        *data = coll_lane_room(owners, lanes->room.data, slot, s);
        *count = coll_lane_segment(owners, owners->number, s).count;
        return &lanes->in[s * lanes->others + slot];
    }
    const int result = coll_lane_owns(owners) ? s - owners->segments : s;
    const int which = number * owners->segments + result;
    if (number >= owners->count || result == owners->segments || !lanes->sent[which])
        return NULL;
    const struct block block = coll_lane_segment(owners, number, result);
    *data = coll_lane_data(owners, block);
    *count = block.count;
    return &lanes->lane[which];
}

/* Take what has come from ranks of this part, in turn, a few messages at a time. */
static int take(struct lanes *lanes) {
    const struct lane_owners *owners = &lanes->owners;
    for (int i = 0; i < owners->members && lanes->taking < TAKEN_AT_A_TIME; ++i) {
        const int number = lanes->turn;
        char *data = NULL;
        int count = 0, is_there = 0;
        lanes->turn = (lanes->turn + 1) % owners->members;
        MPI_Request *request =
            number == owners->number ? NULL : next_from(lanes, number, &data, &count);
        if (request != NULL)
            COLL_TRY(PMPI_Iprobe(owners->member[number], MPI_ANY_TAG, owners->cc->comm, &is_there,
                                 MPI_STATUS_IGNORE));
        if (!is_there)
            continue;
        COLL_TRY(receive(lanes, data, count, owners->member[number], request));
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
    if (coll_lane_owns(&lanes->owners))
        COLL_TRY(expect(lanes));
    COLL_TRY(give(lanes));
    if (coll_lane_owns(&lanes->owners))
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

static int make_requests(struct lanes *lanes) {
    const struct lane_owners *owners = &lanes->owners;
    const int s = owners->segments, owns = coll_lane_owns(owners);
    const int others = owns ? lanes->others : 0, parts = owns ? lanes->parts : 0;
    lanes->requests = s * (2 * others + 2 * parts + owners->count);
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

static int make_room(struct lanes *lanes) {
    const struct lane_owners *owners = &lanes->owners;
    if (!coll_lane_owns(owners))
        return MPI_SUCCESS;
    const MPI_Count lane = coll_vector_block(owners->call, owners->count, owners->number).count;
    COLL_TRY(coll_elements_for(owners->call, (lanes->others + lanes->parts) * lane, &lanes->room));
    lanes->crossing =
        coll_element(owners->call, lanes->room.data, (MPI_Aint)(lanes->others * lane));
    return MPI_SUCCESS;
}

/* After an error. A lane was sent first, then it is received. */
static void give_up(struct lanes *lanes) {
    coll_abandon(lanes->in, (int)(lanes->to - lanes->in), (int)(lanes->lane - lanes->to));
    for (int i = 0; i < lanes->owners.count * lanes->owners.segments; ++i)
        coll_abandon(&lanes->lane[i], lanes->sent[i], !lanes->sent[i]);
}

static int with_owners(struct lanes *lanes) {
    const struct lane_owners *owners = &lanes->owners;
    const int lanes_of_others = coll_lane_owns(owners) ? owners->count - 1 : owners->count;
    lanes->others = owners->members - 1;
    lanes->parts = owners->parted->parts - 1;
    lanes->taken = calloc((size_t)owners->members, sizeof *lanes->taken);
    lanes->sent = calloc((size_t)owners->count * (size_t)owners->segments, sizeof *lanes->sent);
    if (lanes->taken == NULL || lanes->sent == NULL)
        return MPI_ERR_NO_MEM;
    lanes->turn = (owners->number + 1) % owners->members;
    lanes->untaken =
        owners->segments * (lanes_of_others + (coll_lane_owns(owners) ? lanes->others : 0));
    COLL_TRY(make_requests(lanes));
    COLL_TRY(make_room(lanes));
    const int error = run_lanes(lanes);
    if (error != MPI_SUCCESS)
        give_up(lanes);
    return error;
}

int coll_lanes_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                         const struct coll_parted *parted, int segment_size) {
    struct lanes lanes = {.owners = {.call = call, .cc = cc, .parted = parted}};
    int error = coll_lane_owners_begin(&lanes.owners, segment_size);
    if (error == MPI_SUCCESS)
        error = with_owners(&lanes);
    coll_lane_owners_end(&lanes.owners);
    free(lanes.taken);
    free(lanes.sent);
    free(lanes.request);
    free(lanes.room.memory);
    return error;
}
