/*
 * STAR without groups: Faraj 2006, Fig. 4.24, as §4.3.1.2 says it. Each candidate is examined in
 * ITER calls; its time is the least of the means over the ranks. The fastest one serves and is
 * monitored.
 */
#include "policy.h"

struct state {
    const struct coll_problem *problem;
    int current, is_monitoring, delta;
    const char *why;
    double best[]; /* [candidate]; after it was replaced, its mean */
};

static size_t bytes(const struct coll_problem *problem) {
    return sizeof(struct state) + (size_t)problem->candidates * sizeof(double);
}

static void start(void *memory, const struct coll_problem *problem) {
    struct state *state = memory;
    *state = (struct state){problem, 0, 0, problem->delta, ""};
}

/* The fastest candidate other than one; -1 if there is none. */
static int best_of(const struct state *state, int other_than) {
    int best = -1;
    for (int i = 0; i < state->problem->candidates; ++i)
        if (i != other_than && (best < 0 || state->best[i] < state->best[best]))
            best = i;
    return best;
}

static struct coll_stage stage_of(const struct state *state) {
    const int iterations = state->problem->iterations;
    return (struct coll_stage){state->current,
                               state->is_monitoring ? state->delta * iterations : iterations,
                               state->is_monitoring};
}

static void measure_select(struct state *state, const struct coll_heard *heard) {
    state->best[state->current++] = coll_least(heard->mean_s, heard->calls);
    state->why = "to be examined";
    if (state->current < state->problem->candidates)
        return;
    state->is_monitoring = 1;
    state->current = best_of(state, -1);
    state->why = "selected: the least time of all that were examined";
}

static void monitor_adapt(struct state *state, const struct coll_heard *heard) {
    const struct coll_problem *problem = state->problem;
    const int second = best_of(state, state->current);
    state->why = "still within the limit";
    if (second < 0)
        return;
    switch (
        coll_watch(problem, heard, (1 + problem->epsilon) * state->best[second], &state->delta)) {
    case COLL_SLOW:
        state->best[state->current] = coll_mean(heard->mean_s, heard->calls);
        state->current = best_of(state, -1);
        state->why = "the one before became slower than the second best";
        return;
    case COLL_EVENT:
        state->why = "a special event: watched more closely";
        return;
    case COLL_GOOD:
        return;
    }
}

static struct coll_stage next(void *memory, const struct coll_heard *heard) {
    struct state *state = memory;
    if (heard == NULL)
        state->why = "to be examined";
    else if (state->is_monitoring)
        monitor_adapt(state, heard);
    else
        measure_select(state, heard);
    return stage_of(state);
}

static const char *why(const void *memory) {
    return ((const struct state *)memory)->why;
}

const struct coll_policy coll_policy_star_basic = {"star-basic", 1, bytes, start, next, why};
