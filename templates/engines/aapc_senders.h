/* Carries out a schedule in phases with tokens from senders, step after step. */
#ifndef AAPC_SENDERS_H
#define AAPC_SENDERS_H

#include "aapc.h"

/*
 * A send starts when its tokens are here, and gives its own tokens when it is complete. With a
 * segment size, the blocks of the call must be plain bytes.
 */
int coll_aapc_senders(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                      const struct coll_call *call, const struct coll_comm *cc);

#endif
