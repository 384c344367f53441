/* The data of a call that is timed, natively and as the library serves it. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdlib.h>

#include "calls.h"

enum { NATIVE, TUNED, SIDES };

/* A call on MPI_COMM_WORLD with root 0, and the memory of its arguments. */
struct message {
    struct arguments arguments;
    void *send, *recv;
    int *counts, *displacements;
};

static inline int make_call(const struct collective *collective, const struct message *message,
                            int side) {
    return collective->call(&message->arguments, side == NATIVE);
}

/* Blocks as even as can be, one after the other. */
static inline void make_blocks(struct message *message, int whole, int count, int size) {
    for (int i = 0; i < size; ++i) {
        const long long first = (long long)count * i, end = first + count;
        message->displacements[i] = (int)(whole ? first / size : first);
        message->counts[i] = (int)(whole ? end / size : end) - message->displacements[i];
    }
}

/* Of `bytes` bytes, as the collective counts them; elements of 8 bytes if the size allows. */
static inline struct message make_message(const struct collective *collective, int bytes, int rank,
                                          int size) {
    const int whole = collective->has & WHOLE;
    const int real = (collective->has & REDUCES) && bytes % 8 == 0;
    const int count = real ? bytes / 8 : bytes;
    const size_t room = (size_t)(whole ? 1 : size) * (size_t)bytes + 1;
    struct message message = {.send = calloc(room, 1),
                              .recv = calloc(room, 1),
                              .counts = calloc((size_t)size, sizeof(int)),
                              .displacements = calloc((size_t)size, sizeof(int))};
    if (message.send == NULL || message.recv == NULL || message.counts == NULL ||
        message.displacements == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    make_blocks(&message, whole, count, size);
    message.arguments = (struct arguments){
        .send = message.send,
        .send_count = (collective->has & UNEVEN) ? message.counts[rank] : count,
        .send_type = real ? MPI_DOUBLE : MPI_BYTE,
        .recv = message.recv,
        .recv_count = count,
        .recv_type = real ? MPI_DOUBLE : MPI_BYTE,
        .op = real ? MPI_SUM : MPI_BXOR,
        .comm = MPI_COMM_WORLD,
        .send_counts = message.counts,
        .send_displacements = message.displacements,
        .recv_counts = message.counts,
        .recv_displacements = message.displacements,
    };
    return message;
}

static inline void free_message(struct message *message) {
    free(message->send);
    free(message->recv);
    free(message->counts);
    free(message->displacements);
}

#endif
