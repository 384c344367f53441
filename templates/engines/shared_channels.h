/* Short messages between ranks of a host, through memory that they share. */
#ifndef SHARED_CHANNELS_H
#define SHARED_CHANNELS_H

#include <stdatomic.h>

#include "coll.h"

/* The most bytes of a message. */
enum { SHARED_CHANNEL_MOST = 1008 };

/* A number that one rank sets and another one waits for. */
struct shared_flag {
    atomic_uint number;
    atomic_uint sleeps; /* whether the rank that waits is to be woken */
    int crowded;        /* whether the ranks of its host have fewer processors than ranks */
};

/* One message at a time from one rank to another. Both count the messages. */
struct shared_channel {
    _Alignas(64) struct shared_flag taken;
    _Alignas(64) struct shared_flag written;
    int64_t written_at; /* see coll_event_time */
    _Alignas(16) char data[SHARED_CHANNEL_MOST];
};

/*
 * Make the channels that ranks read, `count` on this one; all ranks of the communicator call this.
 * of[k] is where the channels of the k-th rank of this rank's host are, in the order of the ranks;
 * *of is NULL if the ranks of this host cannot share memory. It ends with the communicator; then
 * *of, which has to be freed, does not count.
 */
int coll_shared_channels(const struct coll_comm *cc, int count, struct shared_channel ***of);

/*
 * Messages have numbers, from 1 on. The writer waits until the message before has been taken, and
 * then says that this one is in `data`. The reader waits for it, and says that it was taken. In
 * between it finds in `written_at` when it was written.
 */
int coll_shared_begin(const struct coll_comm *cc, struct shared_channel *channel, unsigned number);
void coll_shared_wrote(struct shared_channel *channel, unsigned number);
int coll_shared_await(const struct coll_comm *cc, struct shared_channel *channel, unsigned number);
void coll_shared_took(struct shared_channel *channel, unsigned number);

#endif
