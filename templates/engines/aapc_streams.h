/* Carries out a schedule in phases with tokens from receivers, as two streams. */
#ifndef AAPC_STREAMS_H
#define AAPC_STREAMS_H

#include "aapc.h"

/* A message that a step sends or receives; without bytes, there is none, and its tokens remain. */
struct aapc_message {
    char *data;
    MPI_Aint bytes;
};

/* The ranks that carry out a schedule, and their messages. */
struct aapc_parties {
    MPI_Comm comm;
    const int *rank_of; /* [position] */
    int position;       /* this rank's */
    struct aapc_message (*message_of)(const void *owner, const struct aapc_step *step, bool sends);
    const void *owner; /* the argument of message_of, which is called once for each message */
};

/* Carry out a schedule of any positions. */
int coll_aapc_streams_between(const struct aapc_schedule *schedule,
                              const struct aapc_choice *choice, const struct aapc_parties *parties);

/* The alltoall of a call: each position is a rank. Blocks are plain bytes. */
int coll_aapc_streams(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                      const struct coll_call *call, const struct coll_comm *cc);

#endif
