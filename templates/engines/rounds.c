/*
 * Rounds: ranks send a segment of every message, then the next segment of every message.
 *
 * A link that always has something to send is as fast as it can be, and one that has little to
 * hold back drops nothing. So a rank has few segments under way, of many messages: it goes on when
 * the oldest one that it awaits is here.
 */
#include <stdlib.h>

#include "rounds.h"

#ifdef ROUNDS_STAMPED
static int position_of(const struct coll_comm *cc, int rank) {
    return cc->position_of == NULL ? rank : cc->position_of[rank];
}

/* In a stamp of a segment, its round is in place of a phase. */
static void note(struct rounds *rounds, int place, int from, int to) {
    rounds->awaited[place] = (struct rounds_segment){rounds->round, from};
    if (to != MPI_PROC_NULL)
        coll_stamp(COLL_STAMP_STARTED, rounds->round, position_of(rounds->cc, to));
}

/* A segment has arrived when it is waited for, or before: the rank did not look earlier. */
static int await(struct rounds *rounds, int place) {
    struct rounds_segment *awaited = &rounds->awaited[place];
    COLL_TRY(PMPI_Wait(&rounds->receives[place], MPI_STATUS_IGNORE));
    if (awaited->from != MPI_PROC_NULL)
        coll_stamp(COLL_STAMP_ARRIVED, awaited->round, position_of(rounds->cc, awaited->from));
    awaited->from = MPI_PROC_NULL;
    return MPI_SUCCESS;
}

static int begin(struct rounds *rounds) {
    rounds->awaited = malloc((size_t)rounds->in_flight * sizeof *rounds->awaited);
    if (rounds->awaited == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < rounds->in_flight; ++i)
        rounds->awaited[i].from = MPI_PROC_NULL;
    coll_stamp(COLL_STAMP_BEGUN, 0, position_of(rounds->cc, rounds->cc->rank));
    return MPI_SUCCESS;
}

/* The receives that are left, in their order. */
static int await_all(struct rounds *rounds, int error) {
    for (int i = 0; i < rounds->in_flight && error == MPI_SUCCESS; ++i)
        error = await(rounds, rounds->number++ % rounds->in_flight);
    return error;
}

static void end(struct rounds *rounds) {
    coll_stamp(COLL_STAMP_ENDED, rounds->round, position_of(rounds->cc, rounds->cc->rank));
    free(rounds->awaited);
}

static void end_round(struct rounds *rounds) {
    ++rounds->round;
}
#else
static void note(struct rounds *rounds, int place, int from, int to) {
    (void)rounds;
    (void)place;
    (void)from;
    (void)to;
}

static int await(struct rounds *rounds, int place) {
    return PMPI_Wait(&rounds->receives[place], MPI_STATUS_IGNORE);
}

static int begin(struct rounds *rounds) {
    (void)rounds;
    return MPI_SUCCESS;
}

static int await_all(struct rounds *rounds, int error) {
    (void)rounds;
    return error;
}

static void end(struct rounds *rounds) {
    (void)rounds;
}

static void end_round(struct rounds *rounds) {
    (void)rounds;
}
#endif

/*
 * A rank posts a message once all before it, up to `in_flight` steps ago, are complete for it. So
 * both ends post the first message, in the order of rounds and steps, that is not complete: it
 * completes.
 */
int coll_rounds_step(struct rounds *rounds, int from, int to) {
    const struct coll_call *call = rounds->call;
    const int place = rounds->number++ % rounds->in_flight;
    const int bytes = (int)(rounds->end - rounds->from);
    COLL_TRY(await(rounds, place));
    COLL_TRY(PMPI_Wait(&rounds->sends[place], MPI_STATUS_IGNORE));
    note(rounds, place, from, to);
    if (from != MPI_PROC_NULL)
        COLL_TRY(PMPI_Irecv(coll_recv_block(call, from) + rounds->from, bytes, MPI_PACKED, from,
                            COLL_TAG_DATA, rounds->cc->comm, &rounds->receives[place]));
    if (to != MPI_PROC_NULL)
        COLL_TRY(PMPI_Isend(coll_send_block(call, to) + rounds->from, bytes, MPI_PACKED, to,
                            COLL_TAG_DATA, rounds->cc->comm, &rounds->sends[place]));
    return MPI_SUCCESS;
}

int coll_rounds_run(const struct coll_call *call, const struct coll_comm *cc, int in_flight,
                    int segment_size, int round(struct rounds *rounds)) {
    MPI_Request *requests = malloc(2 * (size_t)in_flight * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < 2 * in_flight; ++i)
        requests[i] = MPI_REQUEST_NULL;
    struct rounds rounds = {
        .call = call,
        .cc = cc,
        .in_flight = in_flight,
        .receives = requests,
        .sends = requests + in_flight,
    };
    int error = begin(&rounds);
    if (error != MPI_SUCCESS) {
        free(requests);
        return error;
    }
    for (; rounds.from < call->bytes && error == MPI_SUCCESS; rounds.from = rounds.end) {
        const MPI_Aint rest = call->bytes - rounds.from;
        rounds.end = rounds.from + (rest < segment_size ? rest : segment_size);
        error = round(&rounds);
        end_round(&rounds);
    }
    error = await_all(&rounds, error);
    error = coll_complete(requests, in_flight, in_flight, error);
    end(&rounds);
    free(requests);
    return error;
}
