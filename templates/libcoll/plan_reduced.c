/* The plans of allreduce, reduce_scatter and reduce_scatter_block. */
#include <stdlib.h>

#include "dispatch.h"
#include "plans.h"

#ifdef COLL_PERSISTENT

int coll_reduce_elements(const struct coll_operation *operation, const struct coll_step *step) {
    return PMPI_Reduce_local(step->from, step->to, (int)step->count, operation->call.recv_type,
                             operation->call.op);
}

int coll_may_reduce_elements(const struct coll_call *call, MPI_Aint *size) {
    return coll_is_predefined(call->recv_type) && coll_is_lasting(call->recv_type, call->op) &&
           coll_is_plain(call->recv_type, size);
}

static int send(struct coll_operation *operation, const void *data, int count, int to) {
    return coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA, data, count,
                         operation->call.recv_type, to);
}

static int receive(struct coll_operation *operation, void *data, int count, int from) {
    return coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA, data, count,
                            operation->call.recv_type, from);
}

/* What a vector is folded into must have been sent. */
static int add_fold(struct coll_operation *operation, const char *from, char *to, int count,
                    int came, int sent) {
    const int folded =
        coll_add_work(operation, COLL_LANE_WORK, coll_reduce_elements, from, to, count);
    coll_add_need(operation, folded, came);
    coll_add_need(operation, folded, sent);
    return folded;
}

/* Recursive doubling, for a power of two: each step with the rank that differs in one bit. */
static void add_doubling(struct coll_operation *operation, MPI_Aint size) {
    const struct coll_comm *cc = operation->cc;
    const int count = operation->call.recv_count;
    char *data = operation->call.recvbuf, *room = operation->scratch;
    int folded = -1;
    for (int bit = 1; bit < cc->size; bit <<= 1, room += size * count) {
        const int sent = send(operation, data, count, cc->rank ^ bit);
        coll_add_need(operation, sent, folded);
        const int came = receive(operation, room, count, cc->rank ^ bit);
        folded = add_fold(operation, room, data, count, came, sent);
    }
}

/*
 * The ring: each block goes around once and is folded on the way, and once more as it is then. A
 * rank gets the result of a block where it had its own part, which must have gone by then.
 */
static int add_reduction_ring(struct coll_operation *operation, MPI_Aint size) {
    const struct coll_comm *cc = operation->cc;
    const int p = cc->size, place = coll_line_place(cc, cc->rank);
    const int count = operation->call.recv_count;
    const int to = coll_line_rank(cc, place + 1), from = coll_line_rank(cc, place - 1);
    int *last = malloc(2 * (size_t)p * sizeof *last);
    if (last == NULL)
        return MPI_ERR_NO_MEM;
    int *gone = last + p;
    for (int block = 0; block < p; ++block)
        last[block] = gone[block] = -1;
    for (int step = 0; step < 2 * p - 2; ++step) {
        const int out = ((place - step) % p + p) % p, in = (out + p - 1) % p;
        const int first_out = (int)((long long)count * out / p);
        const int first_in = (int)((long long)count * in / p);
        const int length_out = (int)((long long)count * (out + 1) / p) - first_out;
        const int length_in = (int)((long long)count * (in + 1) / p) - first_in;
        char *own = (char *)operation->call.recvbuf + first_in * size;
        gone[out] =
            send(operation, (char *)operation->call.recvbuf + first_out * size, length_out, to);
        coll_add_need(operation, gone[out], last[out]);
        if (step < p - 1) {
            char *room = operation->scratch + first_in * size;
            const int came = receive(operation, room, length_in, from);
            last[in] = add_fold(operation, room, own, length_in, came, -1);
        } else {
            last[in] = receive(operation, own, length_in, from);
            coll_add_need(operation, last[in], gone[in]);
        }
    }
    free(last);
    return MPI_SUCCESS;
}

int coll_plan_allreduce(struct coll_operation *operation, const struct coll_routine *routine,
                        int *found) {
    const struct coll_call *call = &operation->call;
    const struct coll_comm *cc = operation->cc;
    const int doubles = routine->steps == COLL_STEPS_DOUBLING;
    const int on_ring = routine->steps == COLL_STEPS_RING;
    MPI_Aint size = 0;
    const int plain = coll_may_reduce_elements(call, &size);
    int ready = plain;
    if (plain) {
        int vectors = 1;
        for (int bit = 2; doubles && bit < cc->size; bit <<= 1)
            ++vectors;
        operation->scratch = malloc((size_t)(size * call->recv_count) * (size_t)vectors);
        ready = operation->scratch != NULL;
    }
    COLL_TRY(coll_all_agree(operation, ready, found));
    if (!*found)
        return MPI_SUCCESS;
    if (call->sendbuf != MPI_IN_PLACE)
        coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, call->sendbuf, call->recvbuf,
                      size * call->recv_count);
    if (on_ring)
        return add_reduction_ring(operation, size);
    add_doubling(operation, size);
    return MPI_SUCCESS;
}

/* What a reduction with scattered results is made of, as plain bytes. */
struct scattered {
    const char *own; /* the operands of this rank for all */
    char *room;      /* for as many that come and go on */
    MPI_Aint size;   /* of an element */
    int most;        /* elements of a message */
};

/*
 * The block of a rank passes: operands that come from the rank before are added up with this rank's
 * own, and go to the rank after. The first rank has its own alone, the last one the result.
 */
static void add_block(struct coll_operation *operation, const struct scattered *scattered, int rank,
                      int before, int after) {
    const struct coll_call *call = &operation->call;
    const int count = (int)coll_recv_count(call, rank);
    MPI_Aint start = 0;
    for (int other = 0; other < rank; ++other)
        start += (MPI_Aint)coll_recv_count(call, other);
    for (MPI_Aint first = 0; first < count; first += scattered->most) {
        const int length = count - first < scattered->most ? (int)(count - first) : scattered->most;
        const MPI_Aint at = (start + first) * scattered->size;
        char *room = after == MPI_PROC_NULL ? (char *)call->recvbuf + first * scattered->size
                                            : scattered->room + at;
        int folded = -1;
        if (before != MPI_PROC_NULL)
            folded = add_fold(operation, scattered->own + at, room, length,
                              receive(operation, room, length, before), -1);
        if (after != MPI_PROC_NULL)
            coll_add_need(operation,
                          send(operation, before == MPI_PROC_NULL ? scattered->own + at : room,
                               length, after),
                          folded);
    }
}

/*
 * Each block starts one place after its own rank, and collects operands all around the ring until
 * it arrives there.
 */
static void add_scattering_ring(struct coll_operation *operation,
                                const struct scattered *scattered) {
    const struct coll_comm *cc = operation->cc;
    const int place = coll_line_place(cc, cc->rank);
    const int before = coll_line_rank(cc, place - 1), after = coll_line_rank(cc, place + 1);
    for (int step = 1; step <= cc->size; ++step)
        add_block(operation, scattered, coll_line_rank(cc, place - step),
                  step == 1 ? MPI_PROC_NULL : before, step == cc->size ? MPI_PROC_NULL : after);
}

int coll_plan_scattered(struct coll_operation *operation, const struct coll_routine *routine,
                        int *found) {
    const struct coll_call *call = &operation->call;
    const int in_place = call->sendbuf == MPI_IN_PLACE;
    struct scattered scattered = {.own = call->sendbuf};
    size_t bytes = 0;
    (void)routine;
    int ready = coll_may_reduce_elements(call, &scattered.size);
    if (ready) {
        for (int rank = 0; rank < operation->cc->size; ++rank)
            bytes += (size_t)coll_recv_count(call, rank) * (size_t)scattered.size;
        operation->scratch = malloc(in_place ? 2 * bytes : bytes);
        ready = operation->scratch != NULL;
    }
    COLL_TRY(coll_all_agree(operation, ready, found));
    if (!*found)
        return MPI_SUCCESS;
    scattered.room = operation->scratch;
    scattered.most = (int)(coll_chunk(COLL_CHUNK, (MPI_Aint)bytes) / scattered.size);
    if (in_place) { /* the result takes the place of operands */
        char *own = operation->scratch + bytes;
        coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, call->recvbuf, own,
                      (MPI_Aint)bytes);
        scattered.own = own;
    }
    add_scattering_ring(operation, &scattered);
    return MPI_SUCCESS;
}

#endif
