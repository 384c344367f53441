/* Carries out a schedule in phases without tokens, step after step. */
#ifndef AAPC_STEPS_H
#define AAPC_STEPS_H

#include "aapc.h"

/*
 * A rank waits for its own messages of a phase before it goes on, and for a barrier where the
 * schedule has one. If the schedule has dummies, this allocates memory for two messages.
 */
int coll_aapc_steps(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                    const struct coll_call *call, const struct coll_comm *cc);

#endif
