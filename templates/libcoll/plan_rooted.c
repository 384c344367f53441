/* The plans of collectives with a root, and of the barrier. */
#include <stdlib.h>

#include "plans.h"

#ifdef COLL_PERSISTENT

enum { CHILDREN_MOST = 32 };

/* This rank in a tree. */
struct node {
    int parent; /* MPI_PROC_NULL: it is the root */
    int count, child[CHILDREN_MOST];
};

/* The line of all ranks in depth-first order, from the root on and around. */
static struct node in_line(const struct coll_comm *cc, int root) {
    const int place = coll_line_place(cc, cc->rank);
    const int distance = (place - coll_line_place(cc, root) + cc->size) % cc->size;
    struct node node = {.parent = distance == 0 ? MPI_PROC_NULL : coll_line_rank(cc, place - 1)};
    if (distance < cc->size - 1)
        node.child[node.count++] = coll_line_rank(cc, place + 1);
    return node;
}

/* The binomial tree of the ranks, counted from the root, the farthest child first. */
static struct node in_binomial(const struct coll_comm *cc, int root) {
    const int relative = (cc->rank - root + cc->size) % cc->size;
    struct node node = {.parent = MPI_PROC_NULL};
    int bit = 1;
    while (bit < cc->size && !(relative & bit))
        bit <<= 1;
    if (relative > 0)
        node.parent = (cc->rank - bit + cc->size) % cc->size;
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (relative + bit < cc->size)
            node.child[node.count++] = (cc->rank + bit) % cc->size;
    return node;
}

static struct node node_of(const struct coll_operation *operation,
                           const struct coll_routine *routine) {
    const int root = operation->call.root;
    return routine->steps == COLL_STEPS_LINE ? in_line(operation->cc, root)
                                             : in_binomial(operation->cc, root);
}

/* Down the line in chunks, so that all ranks are busy; down the binomial tree in whole messages. */
static MPI_Aint chunk_of(const struct coll_routine *routine, MPI_Aint bytes) {
    return routine->steps == COLL_STEPS_LINE ? coll_chunk(COLL_CHUNK, bytes) : bytes;
}

static int send(struct coll_operation *operation, const void *data, MPI_Aint bytes, int to) {
    return coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA, data, bytes, MPI_BYTE, to);
}

static int receive(struct coll_operation *operation, void *data, MPI_Aint bytes, int from) {
    return coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA, data, bytes, MPI_BYTE,
                            from);
}

/* Down a tree in chunks: a rank passes a chunk on to its children when it is here. */
static void add_down(struct coll_operation *operation, const struct node *node, MPI_Aint chunk) {
    const MPI_Aint bytes = operation->call.bytes;
    for (MPI_Aint start = 0; start < bytes; start += chunk) {
        char *data = (char *)operation->call.recvbuf + start;
        const MPI_Aint length = bytes - start < chunk ? bytes - start : chunk;
        const int came =
            node->parent == MPI_PROC_NULL ? -1 : receive(operation, data, length, node->parent);
        for (int i = 0; i < node->count; ++i)
            coll_add_need(operation, send(operation, data, length, node->child[i]), came);
    }
}

int coll_plan_bcast(struct coll_operation *operation, const struct coll_routine *routine,
                    int *found) {
    const struct node node = node_of(operation, routine);
    MPI_Aint size;
    COLL_TRY(coll_all_agree(operation, coll_is_plain(operation->call.recv_type, &size), found));
    if (*found)
        add_down(operation, &node, chunk_of(routine, operation->call.bytes));
    return MPI_SUCCESS;
}

/*
 * Up a tree in chunks: a rank adds up its own operands and what its children send, and passes it
 * on. The sum is in the root's result, or in the scratch, which has room for each child after it.
 * A rank without children sends its operands as they are.
 */
static void add_up(struct coll_operation *operation, const struct node *node, MPI_Aint chunk) {
    const struct coll_call *call = &operation->call;
    const int is_root = node->parent == MPI_PROC_NULL;
    const MPI_Aint bytes = call->bytes, size = bytes / call->recv_count;
    char *sum = is_root ? call->recvbuf : operation->scratch;
    char *room = is_root ? operation->scratch : operation->scratch + bytes;
    const char *out = node->count > 0 ? sum : call->sendbuf;
    if (node->count > 0 && call->sendbuf != MPI_IN_PLACE)
        coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, call->sendbuf, sum, bytes);
    for (MPI_Aint start = 0; start < bytes; start += chunk) {
        const MPI_Aint length = bytes - start < chunk ? bytes - start : chunk;
        int added = -1;
        for (int i = 0; i < node->count; ++i) {
            char *in = room + i * bytes + start;
            const int came = receive(operation, in, length, node->child[i]);
            added = coll_add_work(operation, COLL_LANE_WORK, coll_reduce_elements, in, sum + start,
                                  length / size);
            coll_add_need(operation, added, came);
        }
        if (!is_root)
            coll_add_need(operation, send(operation, out + start, length, node->parent), added);
    }
}

int coll_plan_reduce(struct coll_operation *operation, const struct coll_routine *routine,
                     int *found) {
    const struct coll_call *call = &operation->call;
    const struct node node = node_of(operation, routine);
    const size_t vectors = (size_t)node.count + (node.parent != MPI_PROC_NULL);
    MPI_Aint size = 1;
    int ready = coll_may_reduce_elements(call, &size);
    if (ready && node.count > 0) {
        operation->scratch = malloc(vectors * (size_t)call->bytes);
        ready = operation->scratch != NULL;
    }
    COLL_TRY(coll_all_agree(operation, ready, found));
    if (*found) /* a chunk is of whole elements */
        add_up(operation, &node, chunk_of(routine, call->bytes) / size * size);
    return MPI_SUCCESS;
}

/* Whether the data of this rank is plain bytes, and the root's own block as long as others. */
static int has_plain_blocks(const struct coll_call *call, const struct coll_comm *cc, int to_root) {
    const int is_root = cc->rank == call->root;
    const int sends = to_root ? !is_root || call->sendbuf != MPI_IN_PLACE : is_root;
    const int receives = to_root ? is_root : !is_root || call->recvbuf != MPI_IN_PLACE;
    MPI_Aint sent = 0, received = 0;
    if ((sends && !coll_is_plain(call->send_type, &sent)) ||
        (receives && !coll_is_plain(call->recv_type, &received)))
        return 0;
    return !(sends && receives) || call->send_count * sent == call->recv_count * received;
}

/* All blocks go to the root at once. */
int coll_plan_gather(struct coll_operation *operation, const struct coll_routine *routine,
                     int *found) {
    const struct coll_call *call = &operation->call;
    const struct coll_comm *cc = operation->cc;
    char *blocks = call->recvbuf;
    (void)routine;
    COLL_TRY(coll_all_agree(operation, has_plain_blocks(call, cc, 1), found));
    if (!*found)
        return MPI_SUCCESS;
    if (cc->rank != call->root) {
        send(operation, call->sendbuf, call->bytes, call->root);
        return MPI_SUCCESS;
    }
    if (call->sendbuf != MPI_IN_PLACE)
        coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, call->sendbuf,
                      blocks + cc->rank * call->bytes, call->bytes);
    for (int rank = 0; rank < cc->size; ++rank)
        if (rank != cc->rank)
            receive(operation, blocks + rank * call->bytes, call->bytes, rank);
    return MPI_SUCCESS;
}

/*
 * All blocks leave the root at once, for the rank after it first. Its own one is copied last, as in
 * the blocking call: programs may have it arrive where another block leaves from, which MPI
 * libraries let pass.
 */
int coll_plan_scatter(struct coll_operation *operation, const struct coll_routine *routine,
                      int *found) {
    const struct coll_call *call = &operation->call;
    const struct coll_comm *cc = operation->cc;
    const char *blocks = call->sendbuf;
    (void)routine;
    COLL_TRY(coll_all_agree(operation, has_plain_blocks(call, cc, 0), found));
    if (!*found)
        return MPI_SUCCESS;
    if (cc->rank != call->root) {
        receive(operation, call->recvbuf, call->bytes, call->root);
        return MPI_SUCCESS;
    }
    const int copy =
        call->recvbuf == MPI_IN_PLACE
            ? -1
            : coll_add_work(operation, COLL_LANE_WORK, coll_copy_bytes,
                            blocks + cc->rank * call->bytes, call->recvbuf, call->bytes);
    for (int step = 1; step < cc->size; ++step) {
        const int to = (cc->rank + step) % cc->size;
        coll_add_need(operation, copy, send(operation, blocks + to * call->bytes, call->bytes, to));
    }
    return MPI_SUCCESS;
}

/*
 * Each rank tells the rank 2^k after it that it knows of 2^k ranks. Sends start in their order, so
 * none starts before all that came in the steps before its own.
 */
static void add_dissemination(struct coll_operation *operation) {
    const struct coll_comm *cc = operation->cc;
    const int p = cc->size;
    int came = -1;
    for (int distance = 1; distance < p; distance *= 2) {
        coll_add_need(operation, send(operation, NULL, 0, (cc->rank + distance) % p), came);
        came = receive(operation, NULL, 0, (cc->rank - distance + p) % p);
    }
}

static int nothing(const struct coll_operation *operation, const struct coll_step *step) {
    (void)operation;
    (void)step;
    return MPI_SUCCESS;
}

/* Up a tree when all below have come, and down again. */
static void add_up_and_down(struct coll_operation *operation, const struct node *node) {
    const int complete =
        coll_add_work(operation, COLL_LANE_WORK, nothing, NULL, NULL, 0); /* below this rank */
    int released = complete;
    for (int i = 0; i < node->count; ++i)
        coll_add_need(operation, complete, receive(operation, NULL, 0, node->child[i]));
    if (node->parent != MPI_PROC_NULL) {
        coll_add_need(operation, send(operation, NULL, 0, node->parent), complete);
        released = receive(operation, NULL, 0, node->parent);
    }
    for (int i = 0; i < node->count; ++i)
        coll_add_need(operation, send(operation, NULL, 0, node->child[i]), released);
}

int coll_plan_barrier(struct coll_operation *operation, const struct coll_routine *routine,
                      int *found) {
    const struct node node = in_binomial(operation->cc, 0);
    COLL_TRY(coll_all_agree(operation, 1, found));
    if (!*found)
        return MPI_SUCCESS;
    if (routine->steps == COLL_STEPS_DISSEMINATION)
        add_dissemination(operation);
    else
        add_up_and_down(operation, &node);
    return MPI_SUCCESS;
}

#endif
