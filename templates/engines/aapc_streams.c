/*
 * Carries out a schedule in phases with tokens from receivers.
 *
 * A rank's receives and its sends are two streams, and neither waits for the other. Receives are
 * posted ahead. A send starts when its tokens are here: each says that a message has arrived that
 * would share a link with it. A send that is complete has not arrived: the kernel may still hold
 * its bytes in front of the rank's own link. So the rank's last message has a token, too.
 *
 * A message goes in segments, two of them at a time, and each send waits for its receive. So the
 * kernel never holds more of it, and tokens do not queue behind a long message. They leave when all
 * but the tail of a message is here, and travel while the tail arrives.
 *
 * A message without bytes is left out at both ends, but not its tokens: ranks at other links do not
 * know that it has none. It counts as arrived where its turn is.
 */
#include "aapc_streams.h"

/* Segments of one message that are under way at a time. */
enum { SEGMENTS = 2 };

/* Where a stream is: at a step that has a message for it, or at its end. */
struct cursor {
    bool sends; /* whether it is the stream of sends */
    const struct aapc_step *step, *end;
    const struct aapc_token *token; /* the first one of the step */
    int number;                     /* of the stream's message */
};

/* A message under way; an earlier one of its stream had the slot before. */
struct slot {
    int rank; /* at the other end */
    char *data;
    MPI_Aint bytes, tail;  /* of the whole message, and of its tail, which is one segment */
    int body;              /* segments before the tail */
    int segments, posted;  /* all, and those that have been posted */
    MPI_Request *requests; /* segment k has number k % SEGMENTS */
};

struct streams {
    struct aapc_run run;
    const struct aapc_parties *parties;
    int end_phase; /* the streams end before it */
    struct cursor posting, arriving, sending;
    bool awaiting; /* the tokens of the next send */

    int slots_in, slots_out;
    struct slot *in, *out;

    /* Those of slots_in, of the awaited tokens, of slots_out. */
    int count;
    MPI_Request *requests, *tokens;
};

static bool has_message(const struct streams *streams, const struct cursor *at) {
    return at->step != at->end && at->step->phase < streams->end_phase;
}

static int peer_of(const struct cursor *at) {
    return at->sends ? at->step->to : at->step->from;
}

static void next_step(struct cursor *at) {
    at->token += at->step->awaited + at->step->owed;
    ++at->step;
}

/* Go to the step, from this one on, that has a message for the stream. */
static void find_message(struct cursor *at) {
    while (at->step != at->end && peer_of(at) == AAPC_NOBODY)
        next_step(at);
}

static void next_message(struct cursor *at) {
    next_step(at);
    find_message(at);
    ++at->number;
}

static struct slot *slot_of(const struct streams *streams, const struct cursor *at) {
    return at->sends ? &streams->out[at->number % streams->slots_out]
                     : &streams->in[at->number % streams->slots_in];
}

/*
 * Bytes of a message that may be under way when its tokens leave: at most half of it, and nothing
 * of a message that is one segment.
 */
static MPI_Aint tail_of(const struct aapc_choice *choice, MPI_Aint bytes) {
    if (bytes <= choice->segment_size)
        return 0;
    return choice->tail < bytes / 2 ? choice->tail : bytes / 2;
}

/* Give a stream's message its slot. */
static void enter(const struct streams *streams, const struct cursor *at, struct slot *slot) {
    const struct aapc_choice *choice = streams->run.choice;
    const struct aapc_message message =
        streams->parties->message_of(streams->parties->owner, at->step, at->sends);
    const MPI_Aint size = choice->segment_size, tail = tail_of(choice, message.bytes);
    slot->rank = streams->run.rank_of[peer_of(at)];
    slot->data = message.data;
    slot->bytes = message.bytes;
    slot->tail = tail;
    slot->body = (int)((message.bytes - tail + size - 1) / size);
    slot->segments = slot->body + (tail > 0);
    slot->posted = 0;
}

/* Post segments of a slot's message, as long as they have room. */
static int go_on(const struct streams *streams, struct slot *slot, bool sends) {
    const MPI_Aint size = streams->run.choice->segment_size, body = slot->bytes - slot->tail;
    const MPI_Comm comm = streams->run.comm;
    for (; slot->posted < slot->segments; ++slot->posted) {
        MPI_Request *request = &slot->requests[slot->posted % SEGMENTS];
        if (*request != MPI_REQUEST_NULL)
            break;
        const bool is_tail = slot->posted == slot->body;
        const MPI_Aint from = is_tail ? body : slot->posted * size;
        const MPI_Aint end = is_tail ? slot->bytes : from + size < body ? from + size : body;
        char *data = slot->data + from;
        const int bytes = (int)(end - from);
        if (sends)
            COLL_TRY(
                PMPI_Issend(data, bytes, MPI_PACKED, slot->rank, COLL_TAG_DATA, comm, request));
        else
            COLL_TRY(PMPI_Irecv(data, bytes, MPI_PACKED, slot->rank, COLL_TAG_DATA, comm, request));
    }
    return MPI_SUCCESS;
}

static int go_on_with_all(const struct streams *streams) {
    for (int i = 0; i < streams->slots_in; ++i)
        COLL_TRY(go_on(streams, &streams->in[i], false));
    for (int i = 0; i < streams->slots_out; ++i)
        COLL_TRY(go_on(streams, &streams->out[i], true));
    return MPI_SUCCESS;
}

/* Whether all of a slot's message is here but its tail. */
static bool has_arrived(const struct slot *slot) {
    if (slot->posted < slot->body)
        return false;
    for (int number = slot->posted > SEGMENTS ? slot->posted - SEGMENTS : 0; number < slot->body;
         ++number)
        if (slot->requests[number % SEGMENTS] != MPI_REQUEST_NULL)
            return false;
    return true;
}

/* Pay for the messages that have arrived, in the order of the phases. */
static int pay_for_arrived(struct streams *streams) {
    struct cursor *at = &streams->arriving;
    while (at->number < streams->posting.number && has_arrived(slot_of(streams, at))) {
        coll_stamp_of(COLL_STAMP_ARRIVED, at->step->phase, at->step->from,
                      streams->run.rank_of[at->step->from]);
        COLL_TRY(coll_aapc_pay(&streams->run, at->step, at->token));
        next_message(at);
    }
    return MPI_SUCCESS;
}

/*
 * Whether segments of an earlier message between these two ranks are still to be posted. Messages
 * of one pair have one tag, so a later one waits: what is posted first matches first.
 */
static bool is_behind(const struct slot *slots, int count, const struct slot *own, int rank) {
    for (int i = 0; i < count; ++i)
        if (&slots[i] != own && slots[i].rank == rank && slots[i].posted < slots[i].segments)
            return true;
    return false;
}

/* Give the next messages to receive their slots. */
static int start_receives(struct streams *streams) {
    struct cursor *at = &streams->posting;
    while (has_message(streams, at) && at->number - streams->arriving.number < streams->slots_in) {
        struct slot *slot = slot_of(streams, at);
        if (!aapc_are_complete(slot->requests, SEGMENTS))
            break; /* the tail of an earlier one */
        if (is_behind(streams->in, streams->slots_in, slot, streams->run.rank_of[peer_of(at)]))
            break;
        enter(streams, at, slot);
        COLL_TRY(go_on(streams, slot, false));
        next_message(at);
    }
    return MPI_SUCCESS;
}

/* Await the tokens of the next send, and give it a slot when they are here. */
static int start_sends(struct streams *streams) {
    struct cursor *at = &streams->sending;
    while (has_message(streams, at)) {
        struct slot *slot = slot_of(streams, at);
        if (!streams->awaiting)
            COLL_TRY(coll_aapc_await(&streams->run, at->step, at->token, streams->tokens));
        streams->awaiting = true;
        if (!aapc_are_complete(streams->tokens, at->step->awaited) ||
            !aapc_are_complete(slot->requests, SEGMENTS))
            break;
        if (is_behind(streams->out, streams->slots_out, slot, streams->run.rank_of[peer_of(at)]))
            break;
        coll_stamp_of(COLL_STAMP_STARTED, at->step->phase, at->step->to,
                      streams->run.rank_of[at->step->to]);
        enter(streams, at, slot);
        COLL_TRY(go_on(streams, slot, true));
        streams->awaiting = false;
        next_message(at);
    }
    return MPI_SUCCESS;
}

/* Messages that the streams are past, all together. */
static int passed(const struct streams *streams) {
    return streams->posting.number + streams->arriving.number + streams->sending.number;
}

/* Do all that can be done before another request is complete: one empty message leads to others. */
static int advance(struct streams *streams) {
    int before;
    do {
        before = passed(streams);
        COLL_TRY(go_on_with_all(streams));
        COLL_TRY(pay_for_arrived(streams));
        COLL_TRY(start_receives(streams));
        COLL_TRY(start_sends(streams));
    } while (passed(streams) != before);
    return MPI_SUCCESS;
}

/* Carry on with both streams until everything before a phase is complete. */
static int run_until(struct streams *streams, int end_phase) {
    int index = 0;
    streams->end_phase = end_phase;
    while (index != MPI_UNDEFINED) {
        COLL_TRY(advance(streams));
        COLL_TRY(PMPI_Waitany(streams->count, streams->requests, &index, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

static int run_all(struct streams *streams) {
    const int phases = streams->run.schedule->phases, size = streams->run.choice->block_size;
    for (int phase = size; streams->run.schedule->barriers && phase < phases; phase += size) {
        COLL_TRY(run_until(streams, phase));
        COLL_TRY(coll_aapc_pass_barriers(&streams->run, phase));
    }
    return run_until(streams, phases);
}

/* Put both streams at the first steps of a position that have messages for them. */
static void begin(struct streams *streams, int position) {
    const struct aapc_schedule *schedule = streams->run.schedule;
    const struct cursor first = {
        .step = schedule->steps + schedule->first_step[position],
        .end = schedule->steps + schedule->first_step[position + 1],
        .token = schedule->tokens + schedule->first_token[position],
    };
    streams->posting = streams->sending = first;
    streams->sending.sends = true;
    find_message(&streams->posting);
    find_message(&streams->sending);
    streams->arriving = streams->posting;
}

/*
 * One more than the window: an early token lets a message start while the tail of an earlier one is
 * on its way. But where only messages of different blocks have tokens, the slots alone keep a
 * rank's own messages of a block apart, so there is none to spare.
 */
static int slots_for_sends(const struct aapc_schedule *schedule, int window) {
    return schedule->blocks && !schedule->barriers ? window : window + 1;
}

int coll_aapc_streams_between(const struct aapc_schedule *schedule,
                              const struct aapc_choice *choice,
                              const struct aapc_parties *parties) {
    const int slots_in = choice->receives_ahead;
    const int slots_out = slots_for_sends(schedule, choice->window);
    const int tokens = slots_in * SEGMENTS, sends = tokens + schedule->awaited_most;
    const int count = sends + slots_out * SEGMENTS;
    MPI_Request owed[schedule->owed_most + 1], requests[count];
    struct slot in[slots_in], out[slots_out];
    struct streams streams = {
        .run.schedule = schedule,
        .run.choice = choice,
        .run.comm = parties->comm,
        .run.rank_of = parties->rank_of,
        .run.owed = owed,
        .parties = parties,
        .slots_in = slots_in,
        .slots_out = slots_out,
        .in = in,
        .out = out,
        .count = count,
        .requests = requests,
        .tokens = requests + tokens,
    };
    for (int i = 0; i < count; ++i)
        requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < slots_in; ++i)
        in[i] = (struct slot){.requests = requests + i * SEGMENTS};
    for (int i = 0; i < slots_out; ++i)
        out[i] = (struct slot){.requests = requests + sends + i * SEGMENTS};
    begin(&streams, parties->position);
    coll_stamp(COLL_STAMP_BEGUN, 0, parties->position);
    int error = run_all(&streams);
    if (error != MPI_SUCCESS)
        coll_abandon(requests, sends, slots_out * SEGMENTS);
    error = coll_complete(owed, 0, streams.run.owed_count, error);
    coll_stamp(COLL_STAMP_ENDED, schedule->phases, parties->position);
    return error;
}

struct ranks {
    const struct coll_call *call;
    const struct coll_comm *cc;
};

static struct aapc_message with_rank(const void *owner, const struct aapc_step *step, bool sends) {
    const struct ranks *ranks = owner;
    const int rank = ranks->cc->rank_of[sends ? step->to : step->from];
    return (struct aapc_message){.data = sends ? (char *)coll_send_block(ranks->call, rank)
                                               : coll_recv_block(ranks->call, rank),
                                 .bytes = ranks->call->bytes};
}

int coll_aapc_streams(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                      const struct coll_call *call, const struct coll_comm *cc) {
    const struct ranks ranks = {call, cc};
    const struct aapc_parties parties = {
        .comm = cc->comm,
        .rank_of = cc->rank_of,
        .position = cc->position_of[cc->rank],
        .message_of = with_rank,
        .owner = &ranks,
    };
    return coll_aapc_streams_between(schedule, choice, &parties);
}
