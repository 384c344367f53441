/* Every collective behind one signature, through the library or, if `native`, through PMPI. */
#ifndef CALLS_H
#define CALLS_H

#include <stdlib.h>

#include <mpi.h>

/* The arguments of a call; each collective has its part. Blocks of the v-collectives lie apart. */
struct arguments {
    const void *send;
    int send_count;
    MPI_Datatype send_type;
    void *recv;
    int recv_count;
    MPI_Datatype recv_type;
    MPI_Op op;
    int root;
    MPI_Comm comm;
};

/* What a collective has; reductions and broadcasts have one count and type. */
enum { SENDS = 1, RECEIVES = 2, TWO_TYPES = 4, REDUCES = 8, ROOTED = 16, EXCHANGES = 32 };

enum { PEERS_MOST = 64 };

/* Blocks for, or from, so many ranks: `count` elements each, and one more left free behind. */
struct blocks {
    int counts[PEERS_MOST], places[PEERS_MOST];
};

static inline struct blocks blocks_of(int count) {
    struct blocks blocks;
    for (int i = 0; i < PEERS_MOST; ++i) {
        blocks.counts[i] = count;
        blocks.places[i] = i * (count + 1);
    }
    return blocks;
}

#define CALL(native, name) ((native) ? PMPI_##name : MPI_##name)

static inline int call_allgather(const struct arguments *a, int native) {
    return CALL(native, Allgather)(a->send, a->send_count, a->send_type, a->recv, a->recv_count,
                                   a->recv_type, a->comm);
}

static inline int call_allgatherv(const struct arguments *a, int native) {
    const struct blocks from = blocks_of(a->recv_count);
    return CALL(native, Allgatherv)(a->send, a->send_count, a->send_type, a->recv, from.counts,
                                    from.places, a->recv_type, a->comm);
}

static inline int call_allreduce(const struct arguments *a, int native) {
    return CALL(native, Allreduce)(a->send, a->recv, a->recv_count, a->recv_type, a->op, a->comm);
}

static inline int call_alltoall(const struct arguments *a, int native) {
    return CALL(native, Alltoall)(a->send, a->send_count, a->send_type, a->recv, a->recv_count,
                                  a->recv_type, a->comm);
}

static inline int call_alltoallv(const struct arguments *a, int native) {
    const struct blocks to = blocks_of(a->send_count), from = blocks_of(a->recv_count);
    return CALL(native, Alltoallv)(a->send, to.counts, to.places, a->send_type, a->recv,
                                   from.counts, from.places, a->recv_type, a->comm);
}

static inline int call_barrier(const struct arguments *a, int native) {
    return CALL(native, Barrier)(a->comm);
}

static inline int call_bcast(const struct arguments *a, int native) {
    return CALL(native, Bcast)(a->recv, a->recv_count, a->recv_type, a->root, a->comm);
}

static inline int call_gather(const struct arguments *a, int native) {
    return CALL(native, Gather)(a->send, a->send_count, a->send_type, a->recv, a->recv_count,
                                a->recv_type, a->root, a->comm);
}

static inline int call_reduce(const struct arguments *a, int native) {
    return CALL(native, Reduce)(a->send, a->recv, a->recv_count, a->recv_type, a->op, a->root,
                                a->comm);
}

static inline int call_reduce_scatter(const struct arguments *a, int native) {
    const struct blocks to = blocks_of(a->recv_count);
    return CALL(native, Reduce_scatter)(a->send, a->recv, to.counts, a->recv_type, a->op, a->comm);
}

static inline int call_reduce_scatter_block(const struct arguments *a, int native) {
    return CALL(native, Reduce_scatter_block)(a->send, a->recv, a->recv_count, a->recv_type, a->op,
                                              a->comm);
}

static inline int call_scatter(const struct arguments *a, int native) {
    return CALL(native, Scatter)(a->send, a->send_count, a->send_type, a->recv, a->recv_count,
                                 a->recv_type, a->root, a->comm);
}

static const struct kind {
    const char *name;
    int (*call)(const struct arguments *arguments, int native);
    int has;
} kinds[] = {
    {"allgather", call_allgather, SENDS | RECEIVES | TWO_TYPES},
    {"allgatherv", call_allgatherv, SENDS | RECEIVES | TWO_TYPES},
    {"allreduce", call_allreduce, SENDS | RECEIVES | REDUCES},
    {"alltoall", call_alltoall, SENDS | RECEIVES | TWO_TYPES | EXCHANGES},
    {"alltoallv", call_alltoallv, SENDS | RECEIVES | TWO_TYPES | EXCHANGES},
    {"barrier", call_barrier, 0},
    {"bcast", call_bcast, RECEIVES | ROOTED},
    {"gather", call_gather, SENDS | RECEIVES | TWO_TYPES | ROOTED},
    {"reduce", call_reduce, SENDS | RECEIVES | REDUCES | ROOTED},
    {"reduce_scatter", call_reduce_scatter, SENDS | RECEIVES | REDUCES},
    {"reduce_scatter_block", call_reduce_scatter_block, SENDS | RECEIVES | REDUCES},
    {"scatter", call_scatter, SENDS | RECEIVES | TWO_TYPES | ROOTED},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

#endif
