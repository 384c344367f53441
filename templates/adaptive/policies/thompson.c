/*
 * Thompson sampling with the online bootstrap (Eckles, Kaptein 2014): of each candidate several
 * means are kept, each of a random part of its calls. For each stage one of them is drawn per
 * candidate; the least wins. So a candidate is tried as often as it is likely to be the best,
 * whatever the distribution of the times. Older calls count less. Candidates that what is known
 * leaves out have for means what their known times predict, by those that were tried.
 * Of each group, one is tried first; then the others of the group of the fastest one.
 * After a few trials, what is known leaves out more: it has then shown how far it errs here.
 *
 * If all candidates are slow for a while, the best one may be left for another one, and is then
 * remembered as it was in the worst calls. So what once took less than what serves now takes is
 * tried again after a time that doubles. If what serves is slower right after that, too, the other
 * calls of what was tried no longer count.
 */
#include "policy.h"

/* Calls of the first trial of a candidate, and of a later stage at least: the first one after a
 * meeting does not count. */
enum { MEANS = 16, TRIAL = 3, CALLS = 2 };

/* In ITER calls: when one that was faster is first tried again. */
enum { WAIT = 2 };

/* So many trials show by how much known times err. */
enum { SHOWN = 3 };

/* What a call of before counts after each later one of the same candidate. */
static const double memory_of_calls = 0.98;

/* The share of its stage's time that a meeting may take. No first stage gets more than ITER calls
 * for it. */
static const double meeting_share = 0.02;

struct arm {
    double sum[MEANS], weight[MEANS];
    double first; /* the least time of its first stage */
    double best;  /* the least mean of a stage */
    int calls;
    int is_known_only; /* not tried yet: its means are made of known_s */
};

struct state {
    const struct coll_problem *problem;
    uint64_t random;
    int current, in_a_row; /* stages that it was drawn for in turn */
    int is_ready;          /* each that enters was tried, or is left out */
    int left, wait;        /* calls until the next retry; how many there were before the latest */
    int serving, again;    /* what served, and what is tried again; -1: none is */
    int turn;              /* the candidate whose retry comes next, or one after it */
    double found;          /* a call of what was tried again; 0: not heard yet */
    const char *why;
    struct arm arm[]; /* [candidate] */
};

static size_t bytes(const struct coll_problem *problem) {
    return sizeof(struct state) + (size_t)problem->candidates * sizeof(struct arm);
}

static void start(void *memory, const struct coll_problem *problem) {
    struct state *state = memory;
    *state = (struct state){.problem = problem, .random = problem->seed, .current = -1, .why = ""};
    state->again = -1;
    state->left = state->wait = WAIT * problem->iterations;
    for (int i = 0; i < problem->candidates; ++i)
        state->arm[i] = (struct arm){.calls = 0};
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t draw(struct state *state) {
    uint64_t bits = state->random += 0x9E3779B97F4A7C15u;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return bits ^ bits >> 31;
}

static void fill(struct arm *arm, double time) {
    for (int i = 0; i < MEANS; ++i) {
        arm->sum[i] = time;
        arm->weight[i] = 1;
    }
}

/* Each mean takes a call with probability one half, then with weight 2; all take the first one. */
static void add(struct state *state, struct arm *arm, double time) {
    if (arm->calls == 0 || arm->is_known_only) {
        fill(arm, time);
        arm->is_known_only = 0;
    } else {
        const uint64_t bits = draw(state);
        for (int i = 0; i < MEANS; ++i) {
            const double weight = bits >> i & 1 ? 2 : 0;
            arm->sum[i] = memory_of_calls * arm->sum[i] + weight * time;
            arm->weight[i] = memory_of_calls * arm->weight[i] + weight;
        }
    }
    arm->calls += arm->calls < 1 << 20;
}

/* What a call takes longer in the program than tune measured: late ranks add to each candidate. */
struct addition {
    int count; /* candidates that were tried, and whose time was known */
    double mean, variance;
    double ratio; /* of all their times to all that was known of them */
};

static struct addition added_by_program(const struct state *state) {
    struct addition added = {0, 0, 0, 1};
    double squares = 0, all_known = 0, all_tried = 0;
    for (int i = 0; i < state->problem->candidates; ++i) {
        const double known = state->problem->candidate[i].known_s;
        if (state->arm[i].calls == 0 || known <= 0)
            continue;
        const double one = state->arm[i].first - known, from = one - added.mean;
        added.mean += from / ++added.count; /* Welford 1962 */
        squares += from * (one - added.mean);
        all_known += known;
        all_tried += state->arm[i].first;
    }
    added.ratio = all_known > 0 ? all_tried / all_known : 1;
    added.variance = added.count > 1 ? squares / (added.count - 1) : 0;
    return added;
}

/* The fastest one that was tried, of all or of those with a group, or -1. */
static int fastest_tried(const struct state *state, int with_group) {
    int best = -1;
    for (int i = 0; i < state->problem->candidates; ++i)
        if (state->arm[i].calls > 0 && (!with_group || state->problem->candidate[i].group > 0) &&
            (best < 0 || state->arm[i].first < state->arm[best].first))
            best = i;
    return best;
}

/*
 * Whether trials have shown that a candidate is slower than the best one that was tried: with the
 * additions of those that were tried, its time is above with a probability of 95 %, as Student's
 * distribution predicts one more value from a few.
 */
static int is_excluded(const struct state *state, int candidate) {
    static const double student[] = {2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81};
    enum { LARGEST = sizeof student / sizeof *student - 1 };
    const struct coll_candidate *one = &state->problem->candidate[candidate];
    const struct addition added = added_by_program(state);
    if (candidate == 0 || one->is_native || one->known_s <= 0 || added.count < SHOWN)
        return 0;
    const int at = added.count - SHOWN < LARGEST ? added.count - SHOWN : LARGEST;
    const double above = one->known_s + added.mean -
                         state->arm[fastest_tried(state, 0)].first; /* what is predicted */
    const double most = student[at] * student[at] * added.variance * (1 + 1.0 / added.count);
    return above > 0 && above * above > most; /* no square root: policies need no libm */
}

/* By what is known, whether one candidate is faster than another; the unknown ones are slowest. */
static int is_known_faster(const struct coll_problem *problem, int one, int than) {
    const double time = problem->candidate[one].known_s, other = problem->candidate[than].known_s;
    return time > 0 && (other <= 0 || time < other);
}

/*
 * Members of a group differ little in how a program treats them. So one stands for its group: the
 * table's choice, or else the one that is known to be the fastest. What nothing is known of stands
 * for itself.
 */
static int stands_for_group(const struct coll_problem *problem, int candidate) {
    const int group = problem->candidate[candidate].group;
    if (candidate == 0 || problem->candidate[candidate].is_native || group == 0 ||
        problem->candidate[candidate].known_s <= 0)
        return 1;
    for (int i = 0; i < problem->candidates; ++i)
        if (problem->candidate[i].group == group && i != candidate &&
            coll_enters(problem, i, coll_margin(problem)) &&
            (i == 0 || is_known_faster(problem, i, candidate) ||
             (i < candidate && !is_known_faster(problem, candidate, i))))
            return 0;
    return 1;
}

/*
 * The next of a group that enters and was not tried; of no group: the next that stands for one.
 * Those known to be fast come first. -1: there is none.
 */
static int untried_of(const struct state *state, int group) {
    const struct coll_problem *problem = state->problem;
    int next = -1;
    for (int i = 0; i < problem->candidates; ++i) {
        const int is_asked =
            group > 0 ? problem->candidate[i].group == group : stands_for_group(problem, i);
        if (is_asked && state->arm[i].calls == 0 && coll_enters(problem, i, coll_margin(problem)) &&
            !is_excluded(state, i) && (next < 0 || is_known_faster(problem, i, next)))
            next = i;
    }
    return next;
}

/*
 * Who stands for a group, and then the group of the fastest one of these, also where a candidate
 * without a group was faster, such as the native routine; -1: all of these were tried.
 */
static int untried(const struct state *state) {
    const int next = untried_of(state, 0), best = fastest_tried(state, 1);
    return next < 0 && best >= 0 ? untried_of(state, state->problem->candidate[best].group) : next;
}

/*
 * Those that were not tried get the time that is predicted of them. What the program adds is alike
 * for all; what it saves, as it calls in another way than tune did, is in proportion.
 */
static void get_ready(struct state *state) {
    const struct addition added = added_by_program(state);
    for (int i = 0; i < state->problem->candidates; ++i) {
        const double known = state->problem->candidate[i].known_s;
        if (state->arm[i].calls > 0 || known <= 0)
            continue;
        state->arm[i].is_known_only = 1;
        fill(&state->arm[i], added.mean > 0 ? known + added.mean : known * added.ratio);
    }
    state->is_ready = 1;
    state->left = state->wait; /* for retries, trials do not count */
}

static int drawn(struct state *state) {
    int best = -1;
    double least = 0;
    for (int i = 0; i < state->problem->candidates; ++i) {
        const struct arm *arm = &state->arm[i];
        if (arm->calls == 0 && !arm->is_known_only)
            continue;
        const int mean = (int)(draw(state) % MEANS);
        const double time = arm->sum[mean] / arm->weight[mean];
        if (best < 0 || time < least) {
            best = i;
            least = time;
        }
    }
    return best;
}

/* What a call of a candidate takes: the mean of its means. */
static double time_of(const struct arm *arm) {
    double sum = 0;
    for (int i = 0; i < MEANS; ++i)
        sum += arm->sum[i] / arm->weight[i];
    return sum / MEANS;
}

/* The calls of a candidate's first stage in a row: more if they are short beside a meeting. */
static int shortest(const struct state *state) {
    const struct coll_problem *problem = state->problem;
    const double time = time_of(&state->arm[state->current]);
    const double calls = problem->meeting_s / (meeting_share * time);
    if (!(calls > CALLS))
        return CALLS;
    return calls < problem->iterations ? (int)calls + 1 : problem->iterations;
}

/* The longer a candidate is drawn without a break, the rarer the ranks meet. */
static int calls_of(const struct state *state) {
    const int most = state->problem->delta_bound * state->problem->iterations;
    int calls = shortest(state);
    for (int i = 1; i < state->in_a_row && calls < most; ++i)
        calls *= 2;
    return calls < most ? calls : most;
}

/* What served goes on, and the next retry comes later. */
static void give_up(struct state *state) {
    const int iterations = state->problem->iterations;
    const int bound = state->problem->delta_bound > WAIT ? state->problem->delta_bound : WAIT;
    state->current = state->serving;
    state->again = -1;
    state->wait = 2 * state->wait < bound * iterations ? 2 * state->wait : bound * iterations;
    state->left = state->wait;
}

/* From now on, only the calls of its retry count. */
static void take_over(struct state *state) {
    fill(&state->arm[state->again], state->found);
    state->current = state->again;
    state->again = -1;
    state->in_a_row = 0;
    state->left = state->wait = WAIT * state->problem->iterations;
}

/* What is tried again must be faster than what served was, and then than it is now. */
static void judge_retry(struct state *state, double time) {
    const double before = time_of(&state->arm[state->serving]);
    if (state->found > 0 && coll_is_worth_change(state->problem, state->found, time)) {
        take_over(state);
    } else if (state->found <= 0 && coll_is_worth_change(state->problem, time, before)) {
        state->found = time > 0 ? time : 1e-12; /* 0 stands for not heard */
        state->current = state->serving;
    } else {
        give_up(state);
    }
}

static void hear(struct state *state, const struct coll_heard *heard) {
    const struct coll_heard settled = coll_settled(heard);
    const double mean = coll_mean(settled.mean_s, settled.calls);
    struct arm *arm = &state->arm[state->current];
    if (arm->calls == 0)
        arm->first = coll_least(settled.mean_s, settled.calls);
    if (arm->calls == 0 || mean < arm->best)
        arm->best = mean;
    for (int i = 0; i < settled.calls; ++i)
        add(state, arm, settled.mean_s[i]);
    if (state->again >= 0)
        judge_retry(state, mean);
    else
        state->left -= heard->calls;
}

/* The next one in turn that once took less than what serves takes now, or -1. */
static int once_faster(const struct state *state) {
    const double now = time_of(&state->arm[state->current]);
    const int count = state->problem->candidates;
    for (int i = 0; i < count; ++i) {
        const int next = (state->turn + i) % count;
        const struct arm *arm = &state->arm[next];
        if (next != state->current && arm->calls > 0 &&
            coll_is_worth_change(state->problem, arm->best, now))
            return next;
    }
    return -1;
}

/* Begin a retry if it is time, and there is something to try. */
static void begin_retry(struct state *state) {
    if (state->left > 0 || state->again >= 0)
        return;
    state->again = once_faster(state);
    if (state->again < 0) {
        state->left = state->wait = WAIT * state->problem->iterations;
        return;
    }
    state->turn = state->again + 1;
    state->serving = state->current;
    state->current = state->again;
    state->found = 0;
}

static struct coll_stage next(void *memory, const struct coll_heard *heard) {
    struct state *state = memory;
    if (heard != NULL)
        hear(state, heard);
    const int next = state->is_ready ? -1 : untried(state);
    if (next >= 0) {
        state->current = next;
        state->why = "not tried yet";
        return (struct coll_stage){next, TRIAL, 0};
    }
    if (!state->is_ready)
        get_ready(state);
    begin_retry(state);
    if (state->again >= 0) {
        state->why = state->found > 0 ? "tried beside it" : "faster once: tried again";
        return (struct coll_stage){state->current, TRIAL, 0};
    }
    const int best = drawn(state);
    state->in_a_row = best == state->current ? state->in_a_row + (state->in_a_row < 30) : 1;
    state->current = best;
    state->why = state->in_a_row == 1 ? "drawn: likely enough to be the fastest" : "drawn again";
    return (struct coll_stage){best, calls_of(state), state->in_a_row > 2};
}

static const char *why(const void *memory) {
    return ((const struct state *)memory)->why;
}

const struct coll_policy coll_policy_thompson = {"thompson", 0, bytes, start, next, why};
