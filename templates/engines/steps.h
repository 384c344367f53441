/* The steps of the pair algorithm, and where barriers go between steps. */
#ifndef STEPS_H
#define STEPS_H

#include <stdbool.h>

/* How many steps the pair algorithm takes for p ranks. */
int coll_pair_steps(int p);

/* The partner of a rank in a step from 1 on, or itself. Every two ranks meet in one step. */
int coll_pair_partner(int rank, int step, int p);

/* Whether one of `barriers`, evenly spread between the steps 1 … steps, comes before a step. */
bool coll_barrier_is_due(int step, int steps, int barriers);

#endif
