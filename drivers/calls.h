/* The same calls to the MPI library's own routines and to the routines behind the MPI_ names. */
#ifndef CALLS_H
#define CALLS_H

#include <stdlib.h>

#include <mpi.h>

enum { NATIVE, TUNED, SIDES };

/* The data of a call: `bytes` bytes, or `count` elements of a type to be reduced. */
struct message {
    void *send, *recv;
    int bytes, count;
    MPI_Datatype type;
    MPI_Op op;
    int *counts, *places; /* of blocks that may differ in length */
    int rank;
};

typedef int collective_call(const struct message *m);

/* The native and the tuned call of a collective with the same arguments. */
#define BOTH(Name, ...)                                                                            \
    static int native_##Name(const struct message *m) {                                            \
        (void)m;                                                                                   \
        return PMPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);                                           \
    }                                                                                              \
    static int tuned_##Name(const struct message *m) {                                             \
        (void)m;                                                                                   \
        return MPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);                                            \
    }

#define BLOCK(buffer) m->buffer, m->bytes, MPI_BYTE
#define BLOCKS(buffer) m->buffer, m->counts, m->places, MPI_BYTE
#define OPERANDS(count) m->send, m->recv, count, m->type, m->op

BOTH(Allgather, BLOCK(send), BLOCK(recv))
BOTH(Allgatherv, m->send, m->counts[m->rank], MPI_BYTE, BLOCKS(recv))
BOTH(Allreduce, OPERANDS(m->count))
BOTH(Alltoall, BLOCK(send), BLOCK(recv))
BOTH(Alltoallv, BLOCKS(send), BLOCKS(recv))
BOTH(Bcast, BLOCK(recv), 0)
BOTH(Gather, BLOCK(send), BLOCK(recv), 0)
BOTH(Reduce, OPERANDS(m->count), 0)
BOTH(Reduce_scatter, OPERANDS(m->counts))
BOTH(Reduce_scatter_block, OPERANDS(m->count))
BOTH(Scatter, BLOCK(send), BLOCK(recv), 0)

static int native_Barrier(const struct message *m) {
    (void)m;
    return PMPI_Barrier(MPI_COMM_WORLD);
}

static int tuned_Barrier(const struct message *m) {
    (void)m;
    return MPI_Barrier(MPI_COMM_WORLD);
}

/* Whether a message's size counts all its blocks together, and whether it is reduced. */
enum { PER_RANK = 0, WHOLE = 1, REDUCED = 2 };

static const struct {
    const char *name;
    int traits;
    collective_call *calls[SIDES];
} collectives[] = {
    {"allgather", PER_RANK, {native_Allgather, tuned_Allgather}},
    {"allgatherv", WHOLE, {native_Allgatherv, tuned_Allgatherv}},
    {"allreduce", WHOLE | REDUCED, {native_Allreduce, tuned_Allreduce}},
    {"alltoall", PER_RANK, {native_Alltoall, tuned_Alltoall}},
    {"alltoallv", PER_RANK, {native_Alltoallv, tuned_Alltoallv}},
    {"barrier", WHOLE, {native_Barrier, tuned_Barrier}},
    {"bcast", WHOLE, {native_Bcast, tuned_Bcast}},
    {"gather", PER_RANK, {native_Gather, tuned_Gather}},
    {"reduce", WHOLE | REDUCED, {native_Reduce, tuned_Reduce}},
    {"reduce_scatter", WHOLE | REDUCED, {native_Reduce_scatter, tuned_Reduce_scatter}},
    {"reduce_scatter_block", REDUCED, {native_Reduce_scatter_block, tuned_Reduce_scatter_block}},
    {"scatter", PER_RANK, {native_Scatter, tuned_Scatter}},
};

enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

/* Elements of 8 bytes if the size allows; blocks as even as can be, one after the other. */
static inline struct message make_message(int traits, int bytes, int rank, int size) {
    const int real = (traits & REDUCED) && bytes % 8 == 0;
    const size_t room = (size_t)((traits & WHOLE) ? 1 : size) * (size_t)bytes + 1;
    struct message m = {.send = calloc(room, 1),
                        .recv = calloc(room, 1),
                        .bytes = bytes,
                        .count = real ? bytes / 8 : bytes,
                        .type = real ? MPI_DOUBLE : MPI_BYTE,
                        .op = real ? MPI_SUM : MPI_BXOR,
                        .counts = calloc((size_t)size, sizeof(int)),
                        .places = calloc((size_t)size, sizeof(int)),
                        .rank = rank};
    if (m.send == NULL || m.recv == NULL || m.counts == NULL || m.places == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    for (int i = 0; i < size; ++i) {
        const long long start = (long long)m.count * i, end = start + m.count;
        m.places[i] = (int)((traits & WHOLE) ? start / size : start);
        m.counts[i] = (int)((traits & WHOLE) ? end / size : end) - m.places[i];
    }
    return m;
}

static inline void free_message(struct message *m) {
    free(m->send);
    free(m->recv);
    free(m->counts);
    free(m->places);
}

#endif
