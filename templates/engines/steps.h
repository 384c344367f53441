/* Alltoalls in steps: in a step, a rank sends to one rank and receives from one. */
#ifndef STEPS_H
#define STEPS_H

#include <limits.h>
#include <stdbool.h>

#include "coll.h"

/* What keeps the steps apart; nothing if all members are 0. */
struct between {
    bool tokens; /* before a message goes, its receiver says that it has finished the step before */
    int barriers; /* so many MPI barriers, evenly spread between the steps */
};

/* As many barriers as there are places between steps. */
enum { EACH_TWO_STEPS = INT_MAX };

/* In each step a rank exchanges blocks with one partner, until every two have met. */
int coll_exchange_in_pairs(const struct coll_call *call, const struct coll_comm *cc,
                           struct between between);

/* In step i a rank sends to the rank i after it, and receives from the rank i before it. */
int coll_exchange_around(const struct coll_call *call, const struct coll_comm *cc,
                         struct between between);

#endif
