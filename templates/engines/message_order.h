/* Carries out the schedule of an alltoallv's pattern, whatever the counts of a call are. */
#ifndef MESSAGE_ORDER_H
#define MESSAGE_ORDER_H

#include "aapc_streams.h"

/* Which equal parts of their messages a step sends and receives: part `number` of `parts`. */
struct pattern_step {
    int sent, sent_of;
    int received, received_of;
};

/*
 * A pattern and an order of its messages. The order is a schedule in phases with tokens from
 * receivers; a message may be cut into parts, which have phases of their own.
 */
struct pattern {
    const struct aapc_schedule *schedule;
    const struct pattern_step *parts; /* one for each step of the schedule */
};

/* The part of a message that a step sends or receives; `whole` is all of the message. */
struct aapc_message coll_pattern_part(const struct pattern *pattern, const struct aapc_step *step,
                                      bool sends, const struct aapc_message *whole);

/* Set to[number] to 1 for each position that this one sends to, and from[number] likewise. */
void coll_pattern_note(const struct pattern *pattern, int position, const int *number_of, char *to,
                       char *from);

/*
 * The alltoallv of a call. Blocks of the schedule go in its order, all others after them: both ends
 * know which these are. Blocks are plain bytes.
 */
int coll_pattern_run(const struct pattern *pattern, const struct aapc_choice *choice,
                     const struct coll_call *call, const struct coll_comm *cc);

#endif
