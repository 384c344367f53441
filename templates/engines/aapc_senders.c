/* Carries out a schedule in phases with tokens from senders, step after step. */
#include "aapc_senders.h"

/* Segments of one message that are under way at a time. */
enum { SEGMENTS = 2 };

/* What a step's message has come to: its bytes that were posted, and its pieces under way. */
struct flow {
    MPI_Aint posted;
    int open;
};

struct senders {
    struct aapc_run run;
    const struct coll_call *call;
    const struct coll_comm *cc;
    const struct aapc_step *step;
    const struct aapc_token *token; /* the first one of the step */
    struct flow sent, received;

    /* The requests of a step: pieces that come, then from `tokens` on, then from `sends` on. */
    int pieces, tokens, sends, count;
    MPI_Request *requests;
};

/* Bytes of a message's next segment. */
static int segment_bytes(const struct senders *senders, const struct flow *flow) {
    const MPI_Aint rest = senders->call->bytes - flow->posted;
    const MPI_Aint most = senders->run.choice->segment_size;
    return (int)(rest < most ? rest : most);
}

/* Send the next piece of the step's message: all of it, or a segment of its bytes. */
static int send_piece(struct senders *senders, MPI_Request *request) {
    const struct coll_call *call = senders->call;
    const int to = senders->cc->rank_of[senders->step->to];
    struct flow *flow = &senders->sent;
    ++flow->open;
    if (senders->pieces == 1) {
        flow->posted = call->bytes;
        return coll_issend(call, senders->cc, to, request);
    }
    const char *data = coll_send_block(call, to) + flow->posted;
    const int bytes = segment_bytes(senders, flow);
    flow->posted += bytes;
    return PMPI_Issend(data, bytes, MPI_PACKED, to, COLL_TAG_DATA, senders->cc->comm, request);
}

static int receive_piece(struct senders *senders, MPI_Request *request) {
    const struct coll_call *call = senders->call;
    const int from = senders->cc->rank_of[senders->step->from];
    struct flow *flow = &senders->received;
    ++flow->open;
    if (senders->pieces == 1) {
        flow->posted = call->bytes;
        return coll_irecv(call, senders->cc, from, request);
    }
    char *data = coll_recv_block(call, from) + flow->posted;
    const int bytes = segment_bytes(senders, flow);
    flow->posted += bytes;
    return PMPI_Irecv(data, bytes, MPI_PACKED, from, COLL_TAG_DATA, senders->cc->comm, request);
}

/* Start the first pieces of the step's message. */
static int start_send(struct senders *senders) {
    senders->sent = (struct flow){0, 0};
    for (int i = 0; i < senders->pieces && senders->sent.posted < senders->call->bytes; ++i)
        COLL_TRY(send_piece(senders, &senders->requests[senders->sends + i]));
    return MPI_SUCCESS;
}

static int start_receive(struct senders *senders) {
    senders->received = (struct flow){0, 0};
    for (int i = 0; i < senders->pieces && senders->received.posted < senders->call->bytes; ++i)
        COLL_TRY(receive_piece(senders, &senders->requests[i]));
    return MPI_SUCCESS;
}

/* A piece is complete: the next one takes its request. After the last one, tokens leave. */
static int sent_piece(struct senders *senders, MPI_Request *request) {
    --senders->sent.open;
    if (senders->sent.posted < senders->call->bytes)
        return send_piece(senders, request);
    if (senders->sent.open == 0)
        return coll_aapc_pay(&senders->run, senders->step, senders->token);
    return MPI_SUCCESS;
}

static int received_piece(struct senders *senders, MPI_Request *request) {
    --senders->received.open;
    if (senders->received.posted < senders->call->bytes)
        return receive_piece(senders, request);
    if (senders->received.open == 0)
        coll_stamp(COLL_STAMP_ARRIVED, senders->step->phase, senders->step->from);
    return MPI_SUCCESS;
}

/*
 * Wait until one more of the step's requests is complete, and do at once what follows from it.
 * So tokens leave when the step's send is complete, whether or not its receive is.
 */
static int progress(struct senders *senders, int *index) {
    COLL_TRY(PMPI_Waitany(senders->count, senders->requests, index, MPI_STATUS_IGNORE));
    if (*index == MPI_UNDEFINED)
        return MPI_SUCCESS;
    if (*index >= senders->sends)
        return sent_piece(senders, &senders->requests[*index]);
    if (*index < senders->tokens)
        return received_piece(senders, &senders->requests[*index]);
    return MPI_SUCCESS;
}

/* Start the send of a step when all of its tokens are here. */
static int send_when_allowed(struct senders *senders) {
    MPI_Request *tokens = &senders->requests[senders->tokens];
    int index;
    COLL_TRY(coll_aapc_await(&senders->run, senders->step, senders->token, tokens));
    while (!aapc_are_complete(tokens, senders->step->awaited))
        COLL_TRY(progress(senders, &index));
    coll_stamp(COLL_STAMP_STARTED, senders->step->phase, senders->step->to);
    return start_send(senders);
}

/* Do all of a step. Its requests are null before and, unless there is an error, after it. */
static int carry_out(struct senders *senders) {
    COLL_TRY(coll_aapc_pass_barriers(&senders->run, senders->step->phase));
    if (senders->step->from != AAPC_NOBODY)
        COLL_TRY(start_receive(senders));
    if (senders->step->to != AAPC_NOBODY)
        COLL_TRY(send_when_allowed(senders));
    for (int index = 0; index != MPI_UNDEFINED;)
        COLL_TRY(progress(senders, &index));
    return MPI_SUCCESS;
}

/* Carry out the steps of a position in the order of the phases. */
static int carry_out_all(struct senders *senders, int position) {
    const struct aapc_schedule *schedule = senders->run.schedule;
    senders->token = schedule->tokens + schedule->first_token[position];
    for (int i = schedule->first_step[position]; i < schedule->first_step[position + 1]; ++i) {
        senders->step = &schedule->steps[i];
        COLL_TRY(carry_out(senders));
        senders->token += senders->step->awaited + senders->step->owed;
    }
    return coll_aapc_pass_barriers(&senders->run, schedule->phases - 1);
}

int coll_aapc_senders(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                      const struct coll_call *call, const struct coll_comm *cc) {
    const int position = cc->position_of[cc->rank];
    const int pieces = choice->segment_size == 0 ? 1 : SEGMENTS;
    const int sends = pieces + schedule->awaited_most, count = sends + pieces;
    MPI_Request owed[schedule->owed_most + 1], requests[count];
    struct senders senders = {
        .run.schedule = schedule,
        .run.choice = choice,
        .run.comm = cc->comm,
        .run.rank_of = cc->rank_of,
        .run.owed = owed,
        .call = call,
        .cc = cc,
        .pieces = pieces,
        .tokens = pieces,
        .sends = sends,
        .count = count,
        .requests = requests,
    };
    for (int i = 0; i < count; ++i)
        requests[i] = MPI_REQUEST_NULL;
    coll_stamp(COLL_STAMP_BEGUN, 0, position);
    int error = carry_out_all(&senders, position);
    if (error != MPI_SUCCESS)
        coll_abandon(requests, sends, pieces);
    error = coll_complete(owed, 0, senders.run.owed_count, error);
    coll_stamp(COLL_STAMP_ENDED, schedule->phases, position);
    return error;
}
