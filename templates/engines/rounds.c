/*
 * Rounds: ranks send a segment of every message, then the next segment of every message.
 *
 * A link that always has something to send is as fast as it can be, and one that has little to
 * hold back drops nothing. So a rank has few segments under way, of many messages: it goes on when
 * the oldest one that it awaits is here.
 */
#include <stdlib.h>

#include "rounds.h"

/*
 * A rank posts a message once all before it, up to `in_flight` steps ago, are complete for it. So
 * both ends post the first message, in the order of rounds and steps, that is not complete: it
 * completes.
 */
int coll_rounds_step(struct rounds *rounds, int from, int to) {
    const struct coll_call *call = rounds->call;
    const int place = rounds->number++ % rounds->in_flight;
    const int bytes = (int)(rounds->end - rounds->from);
    COLL_TRY(PMPI_Wait(&rounds->receives[place], MPI_STATUS_IGNORE));
    COLL_TRY(PMPI_Wait(&rounds->sends[place], MPI_STATUS_IGNORE));
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
    int error = MPI_SUCCESS;
    for (; rounds.from < call->bytes && error == MPI_SUCCESS; rounds.from = rounds.end) {
        const MPI_Aint rest = call->bytes - rounds.from;
        rounds.end = rounds.from + (rest < segment_size ? rest : segment_size);
        error = round(&rounds);
    }
    error = coll_complete(requests, in_flight, in_flight, error);
    free(requests);
    return error;
}
