/*
 * No search: watches what the decision table chose, candidate 0, against what tune measured. If it
 * takes longer, it and its rivals are tried in a few calls each. Another one serves if it is faster
 * by a factor of 1 + epsilon. Then the table's choice is tried again from time to time, and serves
 * again once it takes what it took before.
 */
#include "policy.h"

enum { PROBE = 3 };

/* The first calls open connections, so what is usual is the least of so many periods. */
enum { SETTLING = 4 };

/* What a meeting takes where nobody has measured it, and what all of them may cost. */
static const double usual_meeting_s = 200e-6, share = 0.01;

enum phase { WATCH, TRY, RETRY };

struct state {
    const struct coll_problem *problem;
    enum phase phase;
    int current;
    int trying;
    int delta;    /* until the table's choice is tried again, in periods */
    int periods;  /* since it was */
    double usual; /* a call of the table's choice; 0: not known yet */
    double now;   /* a call of what serves, when it was chosen */
    int away;     /* another one serves */
    int settled;  /* periods that said what is usual */
    const char *why;
    double time[]; /* [candidate] of the latest trial; 0: not tried */
};

static size_t bytes(const struct coll_problem *problem) {
    return sizeof(struct state) + (size_t)problem->candidates * sizeof(double);
}

static void start(void *memory, const struct coll_problem *problem) {
    struct state *state = memory;
    *state = (struct state){.problem = problem, .delta = problem->delta, .why = ""};
    state->usual = state->now = problem->candidate[0].known_s;
    state->settled = state->usual > 0 ? SETTLING : 0;
    for (int i = 0; i < problem->candidates; ++i)
        state->time[i] = 0;
}

/* A period is so long that meetings cost at most their share; between ITER and the bound for delta.
 */
static int period_of(const struct state *state) {
    const struct coll_problem *problem = state->problem;
    const double meeting = problem->meeting_s > 0 ? problem->meeting_s : usual_meeting_s;
    const double least = problem->iterations, most = least * problem->delta_bound;
    const double calls = state->now > 0 ? meeting / (share * state->now) : least;
    return (int)(calls < least ? least : calls > most ? most : calls);
}

static int next_rival(const struct state *state) {
    const struct coll_problem *problem = state->problem;
    for (int i = 0; i < problem->candidates; ++i)
        if (state->time[i] <= 0 && coll_enters(problem, i, coll_margin(problem)))
            return i;
    return -1;
}

static void watch(struct state *state, int candidate, double time, const char *why) {
    state->phase = WATCH;
    state->current = candidate;
    state->now = time;
    state->away = candidate != 0;
    state->periods = 0;
    state->why = why;
}

static void begin_trial(struct state *state) {
    for (int i = 0; i < state->problem->candidates; ++i)
        state->time[i] = 0;
    state->phase = TRY;
    state->trying = state->current; /* as what serves is now, not as it was before */
    state->why = "slower than before: tried with its rivals";
}

static void judge_trial(struct state *state) {
    int best = state->current;
    for (int i = 0; i < state->problem->candidates; ++i)
        if (state->time[i] > 0 && state->time[i] < state->time[best])
            best = i;
    const double factor = 1 + state->problem->epsilon;
    if (best == state->current || state->time[best] * factor > state->time[state->current]) {
        watch(state, state->current, state->time[state->current],
              "no rival is faster by the margin");
        return;
    }
    state->delta = state->problem->delta;
    watch(state, best, state->time[best], "faster than the one before by the margin");
}

static void try_next(struct state *state, const struct coll_heard *heard) {
    double times[PROBE];
    const int count = heard->calls < PROBE ? heard->calls : PROBE;
    for (int i = 0; i < count; ++i)
        times[i] = heard->mean_s[i];
    const double time = coll_median(times, count);
    state->time[state->trying] = time > 0 ? time : 1e-12; /* 0 stands for not tried */
    state->trying = next_rival(state);
    state->why = "a rival: tried";
    if (state->trying < 0)
        judge_trial(state);
}

/* After the table's choice was tried again: is the cause gone? */
static void judge_return(struct state *state, const struct coll_heard *heard) {
    const double least = coll_least(heard->mean_s, heard->calls);
    if (least <= (1 + state->problem->epsilon) * state->usual && least <= state->now) {
        state->delta = state->problem->delta;
        watch(state, 0, state->usual, "the table's choice takes what it took before");
        return;
    }
    const int twice = 2 * state->delta;
    state->delta = twice < state->problem->delta_bound ? twice : state->problem->delta_bound;
    watch(state, state->current, state->now, "the table's choice is still slower");
}

/* Where tune measured nothing, the first periods of the table's choice say what it takes. */
static void settle(struct state *state, double mean) {
    if (state->settled >= SETTLING || state->current != 0)
        return;
    ++state->settled;
    if (state->usual <= 0 || mean < state->usual)
        state->usual = state->now = mean;
}

static void judge_period(struct state *state, const struct coll_heard *heard) {
    int delta = state->problem->delta;
    const double mean = coll_mean(heard->mean_s, heard->calls);
    settle(state, mean);
    const double limit = (1 + state->problem->epsilon) * state->now;
    const enum coll_watched watched = coll_watch(state->problem, heard, limit, &delta);
    ++state->periods;
    state->why = watched == COLL_EVENT ? "a special event" : "still within the limit";
    if (watched == COLL_SLOW && mean > limit) {
        begin_trial(state);
    } else if (state->away && state->periods >= state->delta) {
        state->phase = RETRY;
        state->why = "the table's choice: tried again";
    }
}

static struct coll_stage next(void *memory, const struct coll_heard *heard) {
    static void (*const judge[])(struct state *, const struct coll_heard *) = {
        [WATCH] = judge_period, [TRY] = try_next, [RETRY] = judge_return};
    struct state *state = memory;
    if (heard == NULL)
        state->why = "the table's choice";
    else
        judge[state->phase](state, heard);
    switch (state->phase) {
    case TRY:
        return (struct coll_stage){state->trying, PROBE, 0};
    case RETRY:
        return (struct coll_stage){0, PROBE, 0};
    case WATCH:
        break;
    }
    return (struct coll_stage){state->current, period_of(state), 1};
}

static const char *why(const void *memory) {
    return ((const struct state *)memory)->why;
}

const struct coll_policy coll_policy_guard = {"guard", 0, bytes, start, next, why};
