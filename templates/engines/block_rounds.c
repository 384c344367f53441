/*
 * Blocks of an alltoallv in rounds of segments; empty ones are skipped.
 *
 * A send that is complete may be in a buffer of its host. So a rank takes its steps in their order,
 * and goes on when the oldest one is complete: what it receives sets its pace.
 *
 * Both ends of a block know its length, and so which segments there are. Take the first segment, in
 * the order of rounds and steps, that is not complete. No earlier one holds up its two ends, and
 * each window has room for one: both have posted it, and it completes. So it does not matter that
 * ranks have other blocks, and other windows. Each rank comes to coll_rounds_complete: what it
 * waits for before that needs no segment.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "block_rounds.h"

/* A step of a round: a segment that goes out, and one that comes in; either may be empty. */
struct under_way {
    int bytes; /* of the longer one */
    MPI_Request receive, send;
};

struct rounds_window {
    MPI_Count from;   /* the bytes of a block before this round */
    int *distances;   /* to the receivers in the steps of this round, ascending */
    int left, next;   /* how many these are, and which is next */
    int bytes;        /* under way */
    int first, count; /* places of what is under way */
    int places;
    struct under_way steps[]; /* [place] */
};

static MPI_Count length_of(const struct block_rounds *rounds, MPI_Count bytes) {
    return bytes > rounds->longer_than ? bytes : 0;
}

static MPI_Count length_to(const struct block_rounds *rounds, int rank) {
    return length_of(rounds, coll_send_count(rounds->call, rank));
}

static MPI_Count length_from(const struct block_rounds *rounds, int rank) {
    return length_of(rounds, coll_recv_count(rounds->call, rank));
}

/* The receiver, and the sender, at a distance. */
static int receiver_at(const struct block_rounds *rounds, int distance) {
    return (rounds->cc->rank + distance) % rounds->cc->size;
}

static int sender_at(const struct block_rounds *rounds, int distance) {
    return (rounds->cc->rank - distance + rounds->cc->size) % rounds->cc->size;
}

/* Leave out the distances at which both blocks have ended before this round, and begin anew. */
static void begin_round(const struct block_rounds *rounds) {
    struct rounds_window *window = rounds->window;
    int left = 0;
    for (int i = 0; i < window->left; ++i) {
        const int distance = window->distances[i];
        if (length_to(rounds, receiver_at(rounds, distance)) > window->from ||
            length_from(rounds, sender_at(rounds, distance)) > window->from)
            window->distances[left++] = distance;
    }
    window->left = left;
    window->next = 0;
}

int coll_rounds_begin(struct block_rounds *rounds) {
    /* Short blocks go all at once: each rank has one from each other one. */
    const int p = rounds->cc->size, full = rounds->in_flight / rounds->segment_size;
    const int places = p > full ? p : full;
    struct rounds_window *window = malloc(sizeof *window + (size_t)places * sizeof *window->steps +
                                          (size_t)p * sizeof *window->distances);
    rounds->window = window;
    if (window == NULL)
        return MPI_ERR_NO_MEM;
    *window = (struct rounds_window){
        .distances = (int *)(window->steps + places),
        .left = p - 1,
        .places = places,
    };
    for (int i = 0; i < window->left; ++i)
        window->distances[i] = i + 1;
    begin_round(rounds);
    return MPI_SUCCESS;
}

static void forget_oldest(struct rounds_window *window) {
    window->bytes -= window->steps[window->first].bytes;
    window->first = (window->first + 1) % window->places;
    --window->count;
}

static int complete_oldest(struct rounds_window *window) {
    struct under_way *oldest = &window->steps[window->first];
    COLL_TRY(PMPI_Wait(&oldest->receive, MPI_STATUS_IGNORE));
    COLL_TRY(PMPI_Wait(&oldest->send, MPI_STATUS_IGNORE));
    forget_oldest(window);
    return MPI_SUCCESS;
}

static int test_oldest(struct rounds_window *window, int *is_complete) {
    struct under_way *oldest = &window->steps[window->first];
    COLL_TRY(PMPI_Test(&oldest->receive, is_complete, MPI_STATUS_IGNORE));
    if (*is_complete)
        COLL_TRY(PMPI_Test(&oldest->send, is_complete, MPI_STATUS_IGNORE));
    if (*is_complete)
        forget_oldest(window);
    return MPI_SUCCESS;
}

static bool has_room(const struct block_rounds *rounds, int bytes) {
    const struct rounds_window *window = rounds->window;
    return bytes == 0 || window->count == 0 ||
           (window->count < window->places && bytes <= rounds->in_flight - window->bytes);
}

/* The bytes of a block that go in this round. */
static int segment_of(const struct block_rounds *rounds, MPI_Count length) {
    const MPI_Count from = rounds->window->from, rest = length > from ? length - from : 0;
    return rest < rounds->segment_size ? (int)rest : rounds->segment_size;
}

struct segments {
    int to, source;
    int sent, received; /* bytes */
    int bytes;          /* of the longer one */
};

static struct segments next_segments(const struct block_rounds *rounds) {
    const int distance = rounds->window->distances[rounds->window->next];
    struct segments next = {.to = receiver_at(rounds, distance),
                            .source = sender_at(rounds, distance)};
    next.sent = segment_of(rounds, length_to(rounds, next.to));
    next.received = segment_of(rounds, length_from(rounds, next.source));
    next.bytes = next.sent > next.received ? next.sent : next.received;
    return next;
}

static int take_step(const struct block_rounds *rounds, const struct segments *segments) {
    const struct coll_call *call = rounds->call;
    const MPI_Comm comm = rounds->cc->comm;
    struct rounds_window *window = rounds->window;
    struct under_way *step = &window->steps[(window->first + window->count) % window->places];
    *step = (struct under_way){segments->bytes, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    ++window->count;
    window->bytes += segments->bytes;
    if (segments->received > 0)
        COLL_TRY(PMPI_Irecv(coll_recv_block(call, segments->source) + window->from,
                            segments->received, MPI_PACKED, segments->source, COLL_TAG_ROUNDS, comm,
                            &step->receive));
    if (segments->sent > 0)
        COLL_TRY(PMPI_Isend(coll_send_block(call, segments->to) + window->from, segments->sent,
                            MPI_PACKED, segments->to, COLL_TAG_ROUNDS, comm, &step->send));
    return MPI_SUCCESS;
}

static void advance(const struct block_rounds *rounds) {
    struct rounds_window *window = rounds->window;
    if (++window->next < window->left)
        return;
    window->from += rounds->segment_size;
    begin_round(rounds);
}

/* Take the steps that there is room for; wait for room, or stop where there is none. */
static int take_steps(const struct block_rounds *rounds, bool waits) {
    struct rounds_window *window = rounds->window;
    for (; window->left > 0; advance(rounds)) {
        const struct segments next = next_segments(rounds);
        while (!has_room(rounds, next.bytes)) {
            int is_complete = 1;
            COLL_TRY(waits ? complete_oldest(window) : test_oldest(window, &is_complete));
            if (!is_complete)
                return MPI_SUCCESS;
        }
        if (next.bytes > 0)
            COLL_TRY(take_step(rounds, &next));
    }
    return MPI_SUCCESS;
}

int coll_rounds_go_on(const struct block_rounds *rounds) {
    return take_steps(rounds, false);
}

int coll_rounds_complete(const struct block_rounds *rounds) {
    COLL_TRY(take_steps(rounds, true));
    while (rounds->window->count > 0)
        COLL_TRY(complete_oldest(rounds->window));
    return MPI_SUCCESS;
}

void coll_rounds_end(const struct block_rounds *rounds) {
    struct rounds_window *window = rounds->window;
    for (; window != NULL && window->count > 0; --window->count) {
        struct under_way *step = &window->steps[window->first];
        MPI_Request requests[2] = {step->receive, step->send};
        coll_abandon(requests, 1, 1);
        window->first = (window->first + 1) % window->places;
    }
    free(window);
}

int coll_block_rounds(const struct coll_call *call, const struct coll_comm *cc,
                      MPI_Count longer_than, int segment_size, int in_flight) {
    struct block_rounds rounds = {call, cc, longer_than, segment_size, in_flight, NULL};
    int error = coll_rounds_begin(&rounds);
    if (error == MPI_SUCCESS)
        error = coll_rounds_complete(&rounds);
    coll_rounds_end(&rounds);
    return error;
}
