/*
 * No search: watches what the decision table chose, candidate 0, against what tune measured. If it
 * takes longer by a factor of 1 + epsilon in two periods in a row, it and its rivals are tried in a
 * few calls each. The best ones are tried once more with it, as the least of many short trials is
 * often a lucky one. Another one serves if it is faster by a third of epsilon in both, and in the
 * second by twice the error that calls of varying times leave. From time to time the table's choice
 * is tried again, and serves again once it takes what it took before.
 *
 * Late processes make calls slow again and again, and no rival is faster. So a trial that finds
 * nothing must be paid before the next one begins: by calls of which it takes a small share. A
 * trial begins at once if calls are slower than before the latest one that found nothing.
 */
#include "policy.h"

/* Calls of a trial, of one that confirms it (least and most), and of one of the table's choice. */
enum { PROBE = 3, CONFIRM = 4, CONFIRM_MOST = 20, RETURN = 3 };

/* Rivals that are tried once more; slow periods that begin a trial. */
enum { FINALISTS = 2, SLOW = 2 };

/* The first calls open connections, so what is usual is the least of so many periods. */
enum { SETTLING = 4 };

/* Calls during which a meeting goes on; meetings over which their delay is averaged. */
enum { MEETING = 2, DELAYS = 16 };

/*
 * What a meeting takes where it was not measured, and which share of the time watching may take,
 * and trials as much.
 */
static const double usual_meeting_s = 200e-6, share = 0.005;

enum phase { WATCH, TRY, AGAIN, RETRY };

struct state {
    const struct coll_problem *problem;
    enum phase phase;
    int current;
    int trying;
    int delta;           /* until the table's choice is tried again, in periods */
    int periods;         /* since it was */
    double usual;        /* a call of the table's choice; 0: not known yet */
    double now;          /* a call of what serves, when it was chosen */
    int away;            /* another one serves */
    int settled;         /* periods that said what is usual */
    int slow;            /* periods that were, in a row */
    double slow_s[SLOW]; /* a call of the latest ones of these, in turn */
    double worst;        /* a call before the latest trial that found nothing; 0: there was none */
    double lost;         /* seconds that such trials took longer than calls of what served */
    double trial;        /* seconds of this trial with its meetings, */
    int tries;           /* its calls, */
    double noise;        /* how much they vary, as a share of a call, */
    double at_first;     /* and a call of what serves, at its beginning */
    int goes_on;         /* the meeting before this period went on while its first calls ran */
    int delays;          /* such periods, at most DELAYS */
    double delay;        /* seconds that these calls took longer than others, in the mean, */
    double varied;       /* and by how many seconds calls vary */
    double met;     /* seconds of the meetings for watching, and of the one before the first call */
    double watched; /* seconds of the calls that were watched */
    int finalist[FINALISTS + 1];
    int finalists, tried; /* how many there are, how many were tried once more */
    const char *why;
    double time[]; /* [candidate] of the latest trial; 0: not tried */
};

static size_t bytes(const struct coll_problem *problem) {
    return sizeof(struct state) + (size_t)problem->candidates * sizeof(double);
}

static void start(void *memory, const struct coll_problem *problem) {
    struct state *state = memory;
    *state = (struct state){.problem = problem, .delta = problem->delta, .why = ""};
    state->met = usual_meeting_s;
    state->usual = state->now = problem->candidate[0].known_s;
    for (int i = 0; i < problem->candidates; ++i)
        state->time[i] = 0;
}

static double or_usual(double meeting_s) {
    return meeting_s > 0 ? meeting_s : usual_meeting_s;
}

static double heard_median(const struct coll_heard *heard) {
    double times[CONFIRM_MOST];
    const int count = heard->calls < CONFIRM_MOST ? heard->calls : CONFIRM_MOST;
    for (int i = 0; i < count; ++i)
        times[i] = heard->mean_s[i];
    const double time = coll_median(times, count);
    return time > 0 ? time : 1e-12; /* 0 stands for not tried */
}

/*
 * The messages of a meeting delay the calls that it goes on with. By chance, single periods say
 * anything: calls vary.
 */
static void note_delay(struct state *state, const struct coll_heard *heard) {
    const struct coll_heard others = {.calls = heard->calls - MEETING,
                                      .mean_s = heard->mean_s + MEETING};
    if (!state->goes_on || others.calls < PROBE || heard->mean_s[0] == heard->mean_s[1])
        return; /* equal ones are told as their mean */
    const double usual = heard_median(&others);
    double delay = MEETING * (coll_mean(heard->mean_s, MEETING) - usual);
    if (delay > usual) /* something else */
        delay = usual;
    state->delays += state->delays < DELAYS;
    state->delay += (delay - state->delay) / state->delays;
    state->varied += (coll_noise(&others, CONFIRM_MOST) * usual - state->varied) / state->delays;
}

/*
 * What a meeting for watching takes: on its own, and of the calls that it goes on with, if that is
 * more than three standard errors. The variance of a delay is that of the calls, and about as
 * much again, MEETING times, of the median of few others.
 */
static double meeting_of(const struct state *state) {
    const double variance = 2 * MEETING * state->varied * state->varied;
    const int is_sure =
        state->delay > 0 && state->delay * state->delay * state->delays > 9 * variance;
    return or_usual(state->problem->hidden_s) + (is_sure ? state->delay : 0);
}

/*
 * A period is so long that meetings have taken at most their share at its end; half of ITER calls
 * at least, and at most the longest one that settings allow.
 */
static int period_of(const struct state *state) {
    const struct coll_problem *problem = state->problem;
    const double least = (problem->iterations + 1) / 2;
    const double most = (double)problem->iterations * problem->delta_bound;
    const double owed = state->met + meeting_of(state) - share * state->watched;
    const double calls = state->now > 0 ? owed / (share * state->now) : least;
    return (int)(calls < least ? least : calls > most ? most : calls);
}

/* Of the latest slow periods, so that one call that took long does not count. */
static double lesser(const double *of_period) {
    return coll_least(of_period, SLOW);
}

/*
 * Whether a rival may be faster now: what slows calls down makes no candidate faster than it was.
 * By what is known, it took so many times what the table's choice did, which took its usual time.
 */
static int may_win(const struct state *state, int candidate) {
    const struct coll_problem *problem = state->problem;
    const double own = problem->candidate[0].known_s, known = problem->candidate[candidate].known_s;
    const double slow = state->slow_s[0] > state->slow_s[1] ? state->slow_s[0] : state->slow_s[1];
    return own <= 0 || known <= 0 ||
           coll_is_worth_change(problem, known / own * state->usual, slow);
}

static int next_rival(const struct state *state) {
    const struct coll_problem *problem = state->problem;
    for (int i = 0; i < problem->candidates; ++i)
        if (state->time[i] <= 0 && coll_enters(problem, i, coll_margin(problem)) &&
            may_win(state, i))
            return i;
    return -1;
}

static void watch(struct state *state, int candidate, double time, const char *why) {
    state->phase = WATCH;
    state->current = candidate;
    state->now = time;
    state->away = candidate != 0;
    state->periods = 0;
    state->slow = 0;
    state->why = why;
}

/* No rival is faster, so what was slow is usual now: else noise would begin trial after trial. */
static void stay(struct state *state, const char *why) {
    const double time = state->time[state->current], slow = lesser(state->slow_s);
    const double most = time > state->at_first ? time : state->at_first;
    const double lost = state->trial - state->tries * most;
    state->lost += lost > 0 ? lost : 0;
    state->worst = slow;
    watch(state, state->current, time > slow ? time : slow, why);
    state->settled = 0; /* the next periods may say that it was a burst */
    if (state->current == 0)
        state->usual = state->now;
}

/* Whether trials that found nothing are paid, or this is worse than what the latest was for. */
static int may_try(const struct state *state) {
    const double worse = (1 + state->problem->epsilon) * state->worst;
    return state->lost <= share * state->watched || lesser(state->slow_s) > worse;
}

static void begin_trial(struct state *state) {
    state->trial = state->noise = 0;
    state->tries = 0;
    for (int i = 0; i < state->problem->candidates; ++i)
        state->time[i] = 0;
    state->phase = TRY;
    state->trying = state->current; /* as what serves is now, not as it was before */
    state->why = "slower than before: tried with its rivals";
}

/*
 * Calls that confirm a trial: so many that the error of a difference is half of epsilon, within
 * bounds. The first one does not count.
 */
static int confirming(const struct state *state) {
    const struct coll_problem *problem = state->problem;
    const int period = problem->iterations * problem->delta_bound;
    const int most = period > CONFIRM_MOST ? CONFIRM_MOST : period > CONFIRM ? period : CONFIRM;
    const double error = problem->epsilon > 0 ? 2 * state->noise / problem->epsilon : most;
    const double need = 1 + 2 * error * error;
    return need < CONFIRM ? CONFIRM : need > most ? most : (int)need;
}

static int is_faster(const struct state *state, int candidate) {
    const double time = state->time[candidate];
    return time > 0 && coll_is_worth_change(state->problem, time, state->time[state->current]);
}

static int is_finalist(const struct state *state, int candidate) {
    for (int i = 0; i < state->finalists; ++i)
        if (state->finalist[i] == candidate)
            return 1;
    return 0;
}

/* The fastest rival that is no finalist yet, if it is faster by the margin; or -1. */
static int next_finalist(const struct state *state) {
    int best = -1;
    for (int i = 0; i < state->problem->candidates; ++i)
        if (is_faster(state, i) && !is_finalist(state, i) &&
            (best < 0 || state->time[i] < state->time[best]))
            best = i;
    return best;
}

/* What serves and the best rivals are tried once more, if there are any. */
static void begin_final(struct state *state) {
    state->finalist[0] = state->current;
    state->finalists = 1;
    for (int next; state->finalists <= FINALISTS && (next = next_finalist(state)) >= 0;)
        state->finalist[state->finalists++] = next;
    state->tried = 0;
    state->at_first = state->time[state->current];
    state->phase = AGAIN;
    state->why = "the fastest ones: tried once more";
    if (state->finalists == 1)
        stay(state, "no rival is faster by the margin");
}

/* Whether a finalist is faster by the margin, and by twice the standard error of the difference. */
static int is_surely_faster(const struct state *state, int candidate) {
    const double own = state->time[state->current], gain = own - state->time[candidate];
    const double error = state->noise * own; /* of a call */
    return is_faster(state, candidate) &&
           gain * gain >= 4 * (error * error * 2 / (confirming(state) - 1));
}

static void judge_final(struct state *state) {
    int best = state->current;
    for (int i = 1; i < state->finalists; ++i)
        if (is_surely_faster(state, state->finalist[i]) &&
            state->time[state->finalist[i]] < state->time[best])
            best = state->finalist[i];
    if (best == state->current) {
        stay(state, "no rival is faster once more by the margin");
        return;
    }
    state->worst = 0;
    state->delta = state->problem->delta;
    watch(state, best, state->time[best], "faster than the one before by the margin");
}

/* A rival tells, too, how much calls vary: of two calls each, the mean says it of all. */
static void try_next(struct state *state, const struct coll_heard *heard) {
    state->time[state->trying] = heard_median(heard);
    const double tried = (double)state->tries / PROBE;
    state->noise += (coll_noise(heard, PROBE) - state->noise) / tried;
    state->trying = next_rival(state);
    state->why = "a rival: tried";
    if (state->trying < 0)
        begin_final(state);
}

static void try_finalist(struct state *state, const struct coll_heard *heard) {
    state->time[state->finalist[state->tried++]] = heard_median(heard);
    if (state->tried == state->finalists)
        judge_final(state);
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
    state->phase = WATCH;
    state->periods = 0;
    state->why = "the table's choice is still slower";
}

/*
 * What tune measured may be too much: the slowest rank's time, or of another size or shape. So the
 * first periods say, too, what the table's choice takes. After a trial that found nothing, they say
 * what the one that serves takes.
 */
static void settle(struct state *state, double mean) {
    if (state->settled >= SETTLING)
        return;
    ++state->settled;
    if (state->now <= 0 || mean < state->now)
        state->now = mean;
    if (state->current == 0)
        state->usual = state->now;
}

static void judge_period(struct state *state, const struct coll_heard *heard) {
    int delta = state->problem->delta;
    const double mean = coll_mean(heard->mean_s, heard->calls);
    settle(state, mean);
    const double limit = (1 + state->problem->epsilon) * state->now;
    const enum coll_watched watched = coll_watch(state->problem, heard, limit, &delta);
    ++state->periods;
    state->why = watched == COLL_EVENT ? "a special event" : "still within the limit";
    const int is_slow = watched == COLL_SLOW && mean > limit;
    state->slow = is_slow ? state->slow + 1 : 0;
    if (is_slow) {
        state->why = "slower than before";
        state->slow_s[state->slow % SLOW] = mean;
    }
    if (state->slow >= SLOW && may_try(state)) {
        begin_trial(state);
    } else if (state->away && state->periods >= state->delta) {
        state->phase = RETRY;
        state->why = "the table's choice: tried again";
    }
}

static struct coll_stage next(void *memory, const struct coll_heard *heard) {
    static void (*const judge[])(struct state *, const struct coll_heard *) = {
        [WATCH] = judge_period, [TRY] = try_next, [AGAIN] = try_finalist, [RETRY] = judge_return};
    struct state *state = memory;
    const int watched = state->phase == WATCH ? state->current : -1;
    if (heard == NULL) {
        state->why = "the table's choice";
    } else {
        const struct coll_heard settled = coll_settled(heard);
        const double seconds = coll_mean(heard->mean_s, heard->calls) * heard->calls;
        if (state->phase == WATCH) {
            note_delay(state, heard);
            state->met += meeting_of(state);
            state->watched += seconds;
        } else {
            state->trial += seconds + or_usual(state->problem->meeting_s);
            state->tries += heard->calls;
        }
        judge[state->phase](state, &settled);
    }
    state->goes_on = heard != NULL && state->phase == WATCH && state->current == watched;
    switch (state->phase) {
    case TRY:
        return (struct coll_stage){state->trying, PROBE, 0};
    case AGAIN:
        return (struct coll_stage){state->finalist[state->tried], confirming(state), 0};
    case RETRY:
        return (struct coll_stage){0, RETURN, 0};
    case WATCH:
        break;
    }
    return (struct coll_stage){state->current, period_of(state), 1};
}

static const char *why(const void *memory) {
    return ((const struct state *)memory)->why;
}

const struct coll_policy coll_policy_guard = {"guard", 0, bytes, start, next, why};
