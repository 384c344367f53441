/*
 * Successive halving (Karnin, Koren, Somekh 2013) of the candidates that enter by their known
 * times. Each gets two calls; the faster half gets twice as many, and so on; the last two get at
 * least 2 ITER calls. Times are lower medians: one lost frame does not decide. The winner is
 * monitored as in Fig. 4.24. If it becomes slow, a new race starts; from the second new race on,
 * the margin is wider, so that candidates enter that were left out before.
 */
#include "policy.h"

enum { CALLS = 2, KEPT = 32, WIDER_MOST = 8 };

struct runner {
    double times[KEPT]; /* of this race, the latest ones */
    double sum;
    int calls;
    int is_in;
};

struct state {
    const struct coll_problem *problem;
    int current, is_monitoring, delta;
    int calls; /* that each gets in this round */
    int races;
    double limit; /* of the mean of a monitoring period */
    const char *why;
    struct runner runner[]; /* [candidate] */
};

static size_t bytes(const struct coll_problem *problem) {
    return sizeof(struct state) + (size_t)problem->candidates * sizeof(struct runner);
}

/* All runners begin anew; which of them enter depends on the number of races. */
static void line_up(struct state *state) {
    double margin = coll_margin(state->problem);
    for (int i = 1; i < state->races; ++i)
        margin *= 2;
    for (int i = 0; i < state->problem->candidates; ++i) {
        struct runner *runner = &state->runner[i];
        *runner = (struct runner){.is_in = state->races >= WIDER_MOST ||
                                           coll_enters(state->problem, i, margin)};
    }
    state->calls = CALLS;
    state->is_monitoring = 0;
}

static void start(void *memory, const struct coll_problem *problem) {
    struct state *state = memory;
    *state = (struct state){.problem = problem, .delta = problem->delta, .why = ""};
    line_up(state);
}

static double time_of(const struct runner *runner) {
    double times[KEPT];
    const int count = runner->calls < KEPT ? runner->calls : KEPT;
    for (int i = 0; i < count; ++i)
        times[i] = runner->times[i];
    return coll_median(times, count);
}

static void add(struct runner *runner, const struct coll_heard *heard) {
    for (int i = 0; i < heard->calls; ++i) {
        runner->times[runner->calls++ % KEPT] = heard->mean_s[i];
        runner->sum += heard->mean_s[i];
    }
}

static double known(const struct state *state, int candidate) {
    const double time = state->problem->candidate[candidate].known_s;
    return time > 0 ? time : 1e300;
}

/* The candidate that runs next in this round, or -1: that with the least known time. */
static int next_runner(const struct state *state) {
    int next = -1;
    for (int i = 0; i < state->problem->candidates; ++i) {
        const struct runner *runner = &state->runner[i];
        if (!runner->is_in || runner->calls >= state->calls)
            continue;
        if (next < 0 || known(state, i) < known(state, next))
            next = i;
    }
    return next;
}

static int count_in(const struct state *state) {
    int count = 0;
    for (int i = 0; i < state->problem->candidates; ++i)
        count += state->runner[i].is_in;
    return count;
}

static int fastest(const struct state *state) {
    int best = -1;
    for (int i = 0; i < state->problem->candidates; ++i)
        if (state->runner[i].is_in &&
            (best < 0 || time_of(&state->runner[i]) < time_of(&state->runner[best])))
            best = i;
    return best;
}

/* Take the slowest out until half is left, and all that the margin excludes. */
static void halve(struct state *state) {
    const double limit = coll_margin(state->problem) * time_of(&state->runner[fastest(state)]);
    const int half = (count_in(state) + 1) / 2;
    for (int left = count_in(state); left > 1; --left) {
        int slowest = -1;
        for (int i = 0; i < state->problem->candidates; ++i)
            if (state->runner[i].is_in &&
                (slowest < 0 || time_of(&state->runner[i]) >= time_of(&state->runner[slowest])))
                slowest = i;
        if (left <= half && time_of(&state->runner[slowest]) <= limit)
            return;
        state->runner[slowest].is_in = 0;
    }
}

/* The greater of the winner's mean and of the second best's: (1 + epsilon) times it is too slow. */
static double limit_of(const struct state *state) {
    double second = 0;
    for (int i = 0; i < state->problem->candidates; ++i) {
        const struct runner *runner = &state->runner[i];
        if (i == state->current || runner->calls == 0)
            continue;
        if (second <= 0 || runner->sum / runner->calls < second)
            second = runner->sum / runner->calls;
    }
    const struct runner *own = &state->runner[state->current];
    const double mean = own->sum / own->calls;
    return (1 + state->problem->epsilon) * (mean > second ? mean : second);
}

/* Twice as many; the last two get more, as what they cost hardly differs. */
static int calls_of_next_round(const struct state *state) {
    const int twice = 2 * state->calls;
    const int duel = 2 * state->problem->iterations < KEPT ? 2 * state->problem->iterations : KEPT;
    return count_in(state) == 2 && twice < duel ? duel : twice;
}

static void go_on(struct state *state) {
    state->current = next_runner(state);
    while (state->current < 0) {
        halve(state);
        if (count_in(state) == 1) {
            state->current = fastest(state);
            state->limit = limit_of(state);
            state->is_monitoring = 1;
            state->why = "selected: the last one of the race";
            return;
        }
        state->calls = calls_of_next_round(state);
        state->why = "among the faster half: more calls";
        state->current = next_runner(state);
    }
}

static void race(struct state *state, const struct coll_heard *heard) {
    add(&state->runner[state->current], heard);
    state->why = state->calls == CALLS ? "enters the race" : "among the faster half: more calls";
    go_on(state);
}

static void monitor(struct state *state, const struct coll_heard *heard) {
    state->why = "still within the limit";
    switch (coll_watch(state->problem, heard, state->limit, &state->delta)) {
    case COLL_SLOW:
        state->races += state->races < WIDER_MOST;
        line_up(state);
        state->why = "the one before became slow: a new race";
        if (count_in(state) == 1) { /* there is no rival: what it takes now is what it takes */
            state->is_monitoring = 1;
            state->limit = (1 + state->problem->epsilon) * coll_mean(heard->mean_s, heard->calls);
            return;
        }
        state->current = next_runner(state);
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
    if (heard == NULL) {
        state->why = "enters the race";
        state->current = next_runner(state);
    } else if (state->is_monitoring) {
        monitor(state, heard);
    } else {
        race(state, heard);
    }
    const int left = state->calls - state->runner[state->current].calls;
    return (struct coll_stage){
        state->current, state->is_monitoring ? state->delta * state->problem->iterations : left,
        state->is_monitoring};
}

static const char *why(const void *memory) {
    return ((const struct state *)memory)->why;
}

const struct coll_policy coll_policy_halving = {"halving", 0, bytes, start, next, why};
