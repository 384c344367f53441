/*
 * Collectives as the MPI standard defines them, for the calls in which the MPI library itself is
 * wrong: MPI 4.0 defines collectives that move data by the messages that they seem to consist of
 * (§6.5 and on), and reduce_scatter as a reduction whose result is scattered (§6.10).
 */
#ifndef DEFINITION_H
#define DEFINITION_H

#include "sides.h"

/* Whether `from` sends anything to `to`: all to all or to the root, or the root to all. */
static inline int sends_to(const struct caller *caller, const struct coll_call *call, int from,
                           int to) {
    if (!caller->descriptor->rooted)
        return 1;
    return call->root == (caller->descriptor->send == COLL_ALL ? from : to);
}

static inline MPI_Aint place_in(const struct coll_blocks *blocks, int of_all, int count, int rank) {
    if (coll_is_uneven(blocks))
        return coll_displacement_of(blocks, rank);
    return of_all ? (MPI_Aint)rank * count : 0;
}

/* Send every block and receive every block; a rank's own block may be in place. */
static inline int send_messages(const struct caller *caller, const struct coll_call *call,
                                MPI_Aint send_extent, MPI_Aint recv_extent) {
    const struct coll_descriptor *descriptor = caller->descriptor;
    const int own = call->sendbuf != MPI_IN_PLACE && call->recvbuf != MPI_IN_PLACE;
    MPI_Request *requests = calloc(2 * (size_t)caller->size, sizeof(MPI_Request));
    int count = 0, error = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (int i = 0; i < caller->size && error == MPI_SUCCESS; ++i) {
        const MPI_Aint at =
            place_in(&call->recv_blocks, descriptor->recv == COLL_ALL, call->recv_count, i);
        if (sends_to(caller, call, i, caller->rank) && (own || i != caller->rank))
            error =
                PMPI_Irecv((char *)call->recvbuf + at * recv_extent, (int)coll_recv_count(call, i),
                           call->recv_type, i, 0, caller->comm, &requests[count++]);
    }
    for (int i = 0; i < caller->size && error == MPI_SUCCESS; ++i) {
        const MPI_Aint at =
            place_in(&call->send_blocks, descriptor->send == COLL_ALL, call->send_count, i);
        if (sends_to(caller, call, caller->rank, i) && (own || i != caller->rank))
            error = PMPI_Isend((const char *)call->sendbuf + at * send_extent,
                               (int)coll_send_count(call, i), call->send_type, i, 0, caller->comm,
                               &requests[count++]);
    }
    if (error == MPI_SUCCESS)
        error = PMPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
    return error;
}

/* Reduce all blocks on all ranks, and keep the rank's own block. */
static inline int reduce_all(const struct caller *caller, const struct coll_call *call,
                             const struct side *send, const struct side *recv) {
    const int uneven = caller->descriptor->uneven;
    const MPI_Aint bytes = send->bytes > recv->bytes ? send->bytes : recv->bytes;
    int before = 0, total = 0;
    for (int i = 0; i < caller->size; ++i) {
        const int count = uneven ? recv->counts[i] : call->recv_count;
        before += i < caller->rank ? count : 0;
        total += count;
    }
    const int mine = uneven ? recv->counts[caller->rank] : call->recv_count;
    char *all = malloc((size_t)bytes);
    int error = MPI_ERR_NO_MEM;
    if (all != NULL)
        error = PMPI_Allreduce(call->sendbuf, all + recv->origin, total, call->recv_type, call->op,
                               caller->comm);
    if (error == MPI_SUCCESS)
        error = PMPI_Sendrecv(all + recv->origin + before * recv->extent, mine, call->recv_type, 0,
                              0, call->recvbuf, mine, call->recv_type, 0, 0, MPI_COMM_SELF,
                              MPI_STATUS_IGNORE);
    free(all);
    return error;
}

/* Make the call; if it is in place on all ranks, `input` also has the data that it sends. */
static inline int by_definition(const struct caller *caller, const struct coll_call *original,
                                const struct side *send, const struct side *recv,
                                const char *input) {
    struct coll_call call = *original;
    MPI_Aint send_extent = send->extent;
    if (call.sendbuf == MPI_IN_PLACE && !caller->descriptor->rooted) {
        call.sendbuf = input;
        call.send_count = call.recv_count;
        call.send_type = call.recv_type;
        call.send_blocks = call.recv_blocks;
        send_extent = recv->extent;
    }
    if (caller->descriptor->reduces)
        return reduce_all(caller, &call, send, recv);
    return send_messages(caller, &call, send_extent, recv->extent);
}

#endif
