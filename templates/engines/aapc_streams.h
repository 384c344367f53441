/* Carries out a schedule in phases with tokens from receivers, as two streams. */
#ifndef AAPC_STREAMS_H
#define AAPC_STREAMS_H

#include "aapc.h"

/* What two positions exchange: bytes for the other one, and the place of its bytes for this one. */
struct aapc_message {
    const char *out;
    char *in;
    MPI_Aint bytes; /* each way */
};

/* The ranks that carry out a schedule, and their messages. */
struct aapc_parties {
    MPI_Comm comm;
    const int *rank_of; /* [position] */
    int position;       /* this rank's */
    struct aapc_message (*message_with)(const void *owner, int position);
    const void *owner; /* the argument of message_with, which is called once for each message */
};

/* Carry out a schedule of any positions. */
int coll_aapc_streams_between(const struct aapc_schedule *schedule,
                              const struct aapc_choice *choice, const struct aapc_parties *parties);

/* The alltoall of a call: each position is a rank. Blocks are plain bytes. */
int coll_aapc_streams(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                      const struct coll_call *call, const struct coll_comm *cc);

#endif
