/* The plans of collectives, but for those that exchange. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "plans.h"

#ifdef COLL_PERSISTENT

/* A rank has at most about so many messages in each direction. */
enum { CHUNKS = 2048, CHUNK = 8192 };

static const char VARIABLE[] = "LIBCOLL_PERSISTENT";

static void complain(void) {
    coll_complain(VARIABLE, getenv(VARIABLE), "expected auto, window, tokens or native");
}

enum coll_plan_kind coll_plan_kind(void) {
    static const char *const names[] = {"native", "auto", "window", "tokens"};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *value = getenv(VARIABLE);
    if (value == NULL || value[0] == '\0')
        return COLL_PLAN_AUTO;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); ++i)
        if (strcmp(value, names[i]) == 0)
            return (enum coll_plan_kind)i;
    pthread_once(&once, complain);
    return COLL_PLAN_AUTO;
}

MPI_Aint coll_chunk(MPI_Aint least, MPI_Aint bytes) {
    const MPI_Aint wanted = bytes / CHUNKS;
    return (wanted + least - 1) / least * least + (wanted == 0 ? least : 0);
}

/* Steps of a routine serve one collective each, so only those of an allreduce ask for more. */
static int may_reduce(const struct coll_call *call, const struct coll_comm *cc,
                      const struct coll_routine *routine) {
    const int doubles = routine->steps == COLL_STEPS_DOUBLING && (cc->size & (cc->size - 1)) == 0;
    const int on_ring = routine->steps == COLL_STEPS_RING && call->recv_count >= cc->size;
    return !call->ordered && (doubles || on_ring) && !(routine->constraints & COLL_FIXED_ORDER);
}

int coll_may_plan(const struct coll_call *call, const struct coll_comm *cc,
                  const struct coll_routine *routine, coll_planner *planner) {
    if (cc->no_plans)
        return 0;
    if (planner == coll_plan_exchange)
        return coll_may_exchange(call, cc);
    if (planner == coll_plan_allreduce)
        return may_reduce(call, cc, routine);
    return routine->steps != COLL_STEPS_NONE;
}

enum coll_plan_kind coll_least_kind(const double *sums) {
    int kind = COLL_PLAN_NATIVE;
    while (kind < COLL_PLAN_TOKENS && sums[COLL_SUM_KINDS + kind] == 0)
        ++kind;
    return (enum coll_plan_kind)kind;
}

/* Over the private communicator, or that of the application until there is one. */
static int add_up(MPI_Comm comm, const struct coll_comm *cc, double *sums) {
    MPI_Errhandler handler;
    if (cc->comm != MPI_COMM_NULL)
        return PMPI_Allreduce(MPI_IN_PLACE, sums, COLL_SUMS, MPI_DOUBLE, MPI_SUM, cc->comm);
    COLL_TRY(coll_begin_quiet(comm, &handler));
    const int error = PMPI_Allreduce(MPI_IN_PLACE, sums, COLL_SUMS, MPI_DOUBLE, MPI_SUM, comm);
    COLL_TRY(coll_end_quiet(comm, &handler));
    return error;
}

int coll_sum_up(const struct coll_call *call, const struct coll_comm *cc, coll_planner *planner,
                int unable, double *sums, int *possible) {
    const int exchanges = planner == coll_plan_exchange;
    for (int i = 0; i < COLL_SUMS; ++i)
        sums[i] = 0;
    sums[COLL_SUM_KINDS + (int)coll_plan_kind()] = 1;
    if (unable || (exchanges && coll_sum_exchange(call, cc, sums) != MPI_SUCCESS))
        sums[COLL_SUM_UNABLE] = 1;
    *possible = 0;
    COLL_TRY(add_up(call->comm, cc, sums));
    const enum coll_plan_kind kind =
        exchanges ? coll_judge_exchange(cc, sums) : coll_least_kind(sums);
    *possible = sums[COLL_SUM_UNABLE] == 0 && kind != COLL_PLAN_NATIVE;
    return MPI_SUCCESS;
}

int coll_all_agree(const struct coll_operation *operation, int yes, int *all) {
    int mine = yes && coll_plan_kind() != COLL_PLAN_NATIVE;
    return PMPI_Allreduce(&mine, all, 1, MPI_INT, MPI_MIN, operation->plans->comm);
}

/* The rank at a place of the order in which every link is used once; else in the order of ranks. */
static int rank_at(const struct coll_comm *cc, int place) {
    const int wrapped = (place % cc->size + cc->size) % cc->size;
    return cc->kind >= COLL_KIND_HOSTS ? cc->order[wrapped] : wrapped;
}

static int place_of(const struct coll_comm *cc, int rank) {
    return cc->kind >= COLL_KIND_HOSTS ? cc->place_of[rank] : rank;
}

/* The blocks of an allgather in the receive buffer, as plain bytes. */
struct gathered {
    const struct coll_call *call;
    MPI_Aint size; /* of an element */
};

static char *block_of(const struct gathered *gathered, int rank) {
    const struct coll_call *call = gathered->call;
    const MPI_Aint stride = coll_is_uneven(&call->recv_blocks)
                                ? gathered->size
                                : gathered->size * (MPI_Aint)call->recv_count;
    return (char *)call->recvbuf + coll_place_of(&call->recv_blocks, rank) * stride;
}

static MPI_Aint bytes_of(const struct gathered *gathered, int rank) {
    return (MPI_Aint)coll_recv_count(gathered->call, rank) * gathered->size;
}

/*
 * The logical ring: a rank passes on what came last. Blocks go in chunks, so that a long one does
 * not hold the others up.
 */
static void add_ring(struct coll_operation *operation, const struct gathered *gathered,
                     MPI_Aint chunk) {
    const struct coll_comm *cc = operation->cc;
    const int place = place_of(cc, cc->rank);
    const int to = rank_at(cc, place + 1), from = rank_at(cc, place - 1);
    for (int step = 0; step < cc->size; ++step) {
        const int rank = rank_at(cc, place - step);
        const MPI_Aint bytes = bytes_of(gathered, rank);
        char *block = block_of(gathered, rank);
        for (MPI_Aint start = 0, number = 0; start < bytes; start += chunk, ++number) {
            const MPI_Aint length = bytes - start < chunk ? bytes - start : chunk;
            int came = -1;
            if (step > 0)
                came = coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA,
                                        block + start, length, MPI_BYTE, from);
            if (step < cc->size - 1)
                coll_add_need(operation,
                              coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA,
                                            block + start, length, MPI_BYTE, to),
                              came);
        }
    }
}

/* Each block goes to each rank at once. */
static void add_direct(struct coll_operation *operation, const struct gathered *gathered) {
    const struct coll_comm *cc = operation->cc;
    for (int distance = 1; distance < cc->size; ++distance) {
        const int from = (cc->rank - distance + cc->size) % cc->size;
        if (bytes_of(gathered, from) > 0)
            coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA,
                             block_of(gathered, from), bytes_of(gathered, from), MPI_BYTE, from);
    }
    for (int distance = 1; distance < cc->size; ++distance)
        if (bytes_of(gathered, cc->rank) > 0)
            coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA,
                          block_of(gathered, cc->rank), bytes_of(gathered, cc->rank), MPI_BYTE,
                          (cc->rank + distance) % cc->size);
}

/* Whether so many elements at an address are plain bytes; and the size of one. */
static int is_plain(MPI_Datatype type, MPI_Aint *size) {
    MPI_Count bytes;
    int dense;
    if (coll_is_dense(type, &dense) != MPI_SUCCESS || !dense ||
        PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        return 0;
    *size = (MPI_Aint)bytes;
    return 1;
}

int coll_plan_gathered(struct coll_operation *operation, const struct coll_routine *routine,
                       int *found) {
    const struct coll_call *call = &operation->call;
    const struct coll_comm *cc = operation->cc;
    const int on_ring = routine->steps == COLL_STEPS_RING;
    const int is_direct = routine->steps == COLL_STEPS_DIRECT;
    struct gathered gathered = {.call = call};
    MPI_Aint sent = 0, all = 0;
    if (!on_ring && !is_direct)
        return MPI_SUCCESS;
    int plain = is_plain(call->recv_type, &gathered.size) &&
                (call->sendbuf == MPI_IN_PLACE || is_plain(call->send_type, &sent));
    if (plain && call->sendbuf != MPI_IN_PLACE)
        plain = (MPI_Aint)call->send_count * sent == bytes_of(&gathered, cc->rank);
    COLL_TRY(coll_all_agree(operation, plain, found));
    if (!*found)
        return MPI_SUCCESS;
    if (call->sendbuf != MPI_IN_PLACE)
        coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, call->sendbuf,
                      block_of(&gathered, cc->rank), bytes_of(&gathered, cc->rank));
    for (int rank = 0; rank < cc->size; ++rank)
        all += bytes_of(&gathered, rank);
    if (on_ring)
        add_ring(operation, &gathered, coll_chunk(CHUNK, all));
    else
        add_direct(operation, &gathered);
    return MPI_SUCCESS;
}

/* A broadcast in chunks down a tree: a rank passes a chunk on to its children when it is here. */
static void add_tree(struct coll_operation *operation, int parent, const int *children, int count,
                     MPI_Aint bytes, MPI_Aint chunk) {
    char *data = operation->call.recvbuf;
    for (MPI_Aint start = 0; start < bytes; start += chunk) {
        const MPI_Aint length = bytes - start < chunk ? bytes - start : chunk;
        const int came = parent < 0
                             ? -1
                             : coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA,
                                                data + start, length, MPI_BYTE, parent);
        for (int child = 0; child < count; ++child)
            coll_add_need(operation,
                          coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA, data + start,
                                        length, MPI_BYTE, children[child]),
                          came);
    }
}

/* Down the line of all ranks in depth-first order, from the root on and around. */
static void add_line(struct coll_operation *operation, MPI_Aint bytes) {
    const struct coll_comm *cc = operation->cc;
    const int root = place_of(cc, operation->call.root), place = place_of(cc, cc->rank);
    const int distance = (place - root + cc->size) % cc->size;
    const int child = rank_at(cc, place + 1);
    add_tree(operation, distance == 0 ? -1 : rank_at(cc, place - 1), &child,
             distance < cc->size - 1, bytes, coll_chunk(CHUNK, bytes));
}

/* Down the binomial tree of the ranks, the farthest child first, in whole messages. */
static void add_binomial(struct coll_operation *operation, MPI_Aint bytes) {
    enum { CHILDREN = 32 };
    const struct coll_comm *cc = operation->cc;
    const int relative = (cc->rank - operation->call.root + cc->size) % cc->size;
    int children[CHILDREN], count = 0, bit = 1, parent = -1;
    while (bit < cc->size && !(relative & bit))
        bit <<= 1;
    if (relative > 0)
        parent = (cc->rank - bit + cc->size) % cc->size;
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (relative + bit < cc->size)
            children[count++] = (cc->rank + bit) % cc->size;
    add_tree(operation, parent, children, count, bytes, bytes);
}

int coll_plan_bcast(struct coll_operation *operation, const struct coll_routine *routine,
                    int *found) {
    const struct coll_call *call = &operation->call;
    const int in_line = routine->steps == COLL_STEPS_LINE;
    const int is_binomial = routine->steps == COLL_STEPS_BINOMIAL;
    MPI_Aint size;
    if (!in_line && !is_binomial)
        return MPI_SUCCESS;
    COLL_TRY(coll_all_agree(operation, is_plain(call->recv_type, &size), found));
    if (*found && in_line)
        add_line(operation, call->bytes);
    else if (*found)
        add_binomial(operation, call->bytes);
    return MPI_SUCCESS;
}

static int fold(const struct coll_operation *operation, const struct coll_step *step) {
    return PMPI_Reduce_local(step->from, step->to, (int)step->count, operation->call.recv_type,
                             operation->call.op);
}

static int message(struct coll_operation *operation, int sends, void *data, int count, int peer) {
    const MPI_Datatype type = operation->call.recv_type;
    return sends ? coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA, data, count, type,
                                 peer)
                 : coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA, data, count,
                                    type, peer);
}

/* What a vector is folded into must have been sent. */
static int add_fold(struct coll_operation *operation, const char *from, char *to, int count,
                    int came, int sent) {
    const int folded = coll_add_work(operation, COLL_LANE_WORK, fold, from, to, count);
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
        const int sent = message(operation, 1, data, count, cc->rank ^ bit);
        coll_add_need(operation, sent, folded);
        const int came = message(operation, 0, room, count, cc->rank ^ bit);
        folded = add_fold(operation, room, data, count, came, sent);
    }
}

/*
 * The ring: each block goes around once and is folded on the way, and once more as it is then. A
 * rank gets the result of a block where it had its own part, which must have gone by then.
 */
static int add_reduction_ring(struct coll_operation *operation, MPI_Aint size) {
    const struct coll_comm *cc = operation->cc;
    const int p = cc->size, place = place_of(cc, cc->rank), count = operation->call.recv_count;
    const int to = rank_at(cc, place + 1), from = rank_at(cc, place - 1);
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
        gone[out] = message(operation, 1, (char *)operation->call.recvbuf + first_out * size,
                            length_out, to);
        coll_add_need(operation, gone[out], last[out]);
        if (step < p - 1) {
            char *room = operation->scratch + first_in * size;
            const int came = message(operation, 0, room, length_in, from);
            last[in] = add_fold(operation, room, own, length_in, came, -1);
        } else {
            last[in] = message(operation, 0, own, length_in, from);
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
    const int plain = coll_is_predefined(call->recv_type) &&
                      coll_is_lasting(call->recv_type, call->op) &&
                      is_plain(call->recv_type, &size);
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

#endif
