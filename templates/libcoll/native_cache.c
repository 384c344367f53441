/* Calls that were left to the MPI library are left to it again, without a second thought. */
#include "dispatch.h"

/*
 * All that the choice of a routine depends on, as the application says it. With other types and
 * operations than MPI's own it cannot be told again by their handles, which may be others' later.
 */
struct question {
    MPI_Comm comm;
    unsigned forgotten; /* how many communicators: none that bore this handle since */
    MPI_Count send_count, recv_count;
    MPI_Datatype send_type, recv_type;
    MPI_Op op;
    int root, in_place;
};

/* The latest of each collective that was answered by "native", for each thread. */
static _Thread_local struct question latest[COLL_COLLECTIVES];

/* Elements in all blocks, however they are given; -1 where that would take questions to MPI. */
static MPI_Count total(const struct coll_blocks *blocks, int count, MPI_Comm comm) {
    const struct coll_comm *cc;
    MPI_Count sum = 0;
    if (!coll_is_uneven(blocks))
        return count;
    cc = coll_cached(comm);
    for (int rank = 0; cc != NULL && rank < cc->size; ++rank)
        sum += coll_count_of(blocks, rank);
    return cc == NULL ? -1 : sum;
}

static int in_place(const void *buffer) {
    return buffer == MPI_IN_PLACE;
}

static struct question question_of(const struct coll_call *call) {
    return (struct question){
        .comm = call->comm,
        .forgotten = coll_forgotten(),
        .send_count =
            in_place(call->sendbuf) ? 0 : total(&call->send_blocks, call->send_count, call->comm),
        .recv_count = total(&call->recv_blocks, call->recv_count, call->comm),
        .send_type = call->send_type,
        .recv_type = call->recv_type,
        .op = call->op,
        .root = call->root,
        .in_place = in_place(call->sendbuf) + 2 * in_place(call->recvbuf),
    };
}

int coll_cached_native_call(const struct coll_call *call) {
    const struct question *before = &latest[call->collective];
    if (before->comm != call->comm)
        return 0;
    const struct question now = question_of(call);
    return now.forgotten == before->forgotten && now.send_count == before->send_count &&
           now.recv_count == before->recv_count && now.send_type == before->send_type &&
           now.recv_type == before->recv_type && now.op == before->op && now.root == before->root &&
           now.in_place == before->in_place;
}

void coll_cache_native_call(const struct coll_call *call) {
    const struct question now = question_of(call);
    if (now.send_count >= 0 && now.recv_count >= 0 && coll_is_lasting(now.send_type, now.op) &&
        coll_is_lasting(now.recv_type, now.op))
        latest[call->collective] = now;
}
