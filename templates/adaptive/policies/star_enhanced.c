/*
 * STAR with groups: Faraj 2006, §4.3.1.3. One candidate of each group is examined, then the others
 * of the fastest one's group. A group that monitoring enters later is examined as a whole before it
 * is used. A candidate without a group is a group of its own.
 */
#include "policy.h"

struct state {
    const struct coll_problem *problem;
    int current, is_monitoring, delta;
    int entered; /* a candidate of the group that is examined as a whole; -1: none yet */
    const char *why;
    double best[]; /* [candidate]; 0: not examined */
};

static size_t bytes(const struct coll_problem *problem) {
    return sizeof(struct state) + (size_t)problem->candidates * sizeof(double);
}

static void start(void *memory, const struct coll_problem *problem) {
    struct state *state = memory;
    *state = (struct state){problem, 0, 0, problem->delta, -1, ""};
    for (int i = 0; i < problem->candidates; ++i)
        state->best[i] = 0;
}

static int same_group(const struct coll_problem *problem, int one, int other) {
    const struct coll_candidate *candidate = problem->candidate;
    return one == other ||
           (candidate[one].group != 0 && candidate[one].group == candidate[other].group);
}

/* The one that the front matter names, if it is a candidate; else the first of its group. */
static int is_representative(const struct coll_problem *problem, int candidate) {
    int first = -1, named = -1;
    for (int i = problem->candidates - 1; i >= 0; --i)
        if (same_group(problem, i, candidate)) {
            first = i;
            named = problem->candidate[i].is_representative ? i : named;
        }
    return candidate == (named >= 0 ? named : first);
}

/* The fastest candidate other than one that was examined; -1 if there is none. */
static int best_of(const struct state *state, int other_than) {
    int best = -1;
    for (int i = 0; i < state->problem->candidates; ++i)
        if (i != other_than && state->best[i] > 0 &&
            (best < 0 || state->best[i] < state->best[best]))
            best = i;
    return best;
}

/* What is to be examined next, or -1: first the representatives, then the group that is entered. */
static int unexamined(const struct state *state) {
    for (int i = 0; i < state->problem->candidates; ++i) {
        const int wanted = state->entered < 0 ? is_representative(state->problem, i)
                                              : same_group(state->problem, i, state->entered);
        if (wanted && state->best[i] <= 0)
            return i;
    }
    return -1;
}

/* Use the fastest candidate, or examine its group first. */
static void enter_fastest(struct state *state) {
    state->entered = best_of(state, -1);
    state->current = unexamined(state);
    state->is_monitoring = state->current < 0;
    if (state->is_monitoring)
        state->current = state->entered;
}

static void measure_select(struct state *state, const struct coll_heard *heard) {
    const double least = coll_least(heard->mean_s, heard->calls);
    state->best[state->current] = least > 0 ? least : 1e-12; /* 0 stands for not examined */
    state->current = unexamined(state);
    state->why =
        state->entered < 0 ? "to be examined: a representative" : "to be examined: its group";
    if (state->current >= 0)
        return;
    enter_fastest(state);
    state->why = state->is_monitoring ? "selected: the least time in the fastest group"
                                      : "to be examined: its group is the fastest";
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
        enter_fastest(state);
        state->why = state->is_monitoring ? "the one before became slower than the second best"
                                          : "to be examined: the second best is of another group";
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
    const int iterations = state->problem->iterations;
    if (heard == NULL) {
        state->current = unexamined(state);
        state->why = "to be examined: a representative";
    } else if (state->is_monitoring) {
        monitor_adapt(state, heard);
    } else {
        measure_select(state, heard);
    }
    return (struct coll_stage){state->current,
                               state->is_monitoring ? state->delta * iterations : iterations,
                               state->is_monitoring};
}

static const char *why(const void *memory) {
    return ((const struct state *)memory)->why;
}

const struct coll_policy coll_policy_star_enhanced = {"star-enhanced", 1, bytes, start, next, why};
