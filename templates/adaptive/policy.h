/*
 * Selection policies: which candidate serves the next calls of a situation, by what was heard of
 * the calls before. Plain C without MPI and without allocation, so that `stagegen adapt replay`
 * runs what a job runs. Rank 0 of a communicator alone has the state of a policy.
 */
#ifndef POLICY_H
#define POLICY_H

#include <stddef.h>
#include <stdint.h>

/* Candidate 0 is what the decision table chose, unless the policy asks for the source's sets. */
struct coll_candidate {
    double known_s;        /* what tune measured for a call; 0: unknown */
    int group;             /* the source's (Faraj 2006, §4.3.1.3), from 1; 0: none */
    int is_representative; /* of its group: measured before the others of it */
    int is_native;
};

/* It lives as long as the state, and so do the candidates. A 0 stands for the usual value. */
struct coll_problem {
    int candidates; /* at least 1 */
    const struct coll_candidate *candidate;
    int iterations; /* ITER: calls in which the source examines a candidate */
    double epsilon;
    int delta, delta_bound; /* of a monitoring period, in ITER calls: the first, the longest */
    uint64_t seed;
    double
        margin; /* a candidate whose known time is above so many times the least does not enter */
    double meeting_s; /* what a meeting of the ranks takes before the next call; 0: not known yet */
    double hidden_s;  /* and one after a monitoring period, which goes on while calls run */
};

/* So many calls of a candidate. After the last one the ranks meet. */
struct coll_stage {
    int candidate, calls, is_monitoring;
};

/* What a stage took: for each call the mean and the maximum over the ranks. */
struct coll_heard {
    int calls; /* may be fewer than the stage asked for, but at least 1 */
    const double *mean_s, *max_s;
    double skew_s; /* how far apart the ranks came */
};

struct coll_policy {
    const char *name;
    int source_sets; /* its candidates are those with a group alone */
    size_t (*bytes)(const struct coll_problem *problem); /* of its state */
    void (*start)(void *state, const struct coll_problem *problem);
    struct coll_stage (*next)(void *state, const struct coll_heard *heard); /* NULL at first */
    const char *(*why)(const void *state); /* of the last decision; it lives as long as the state */
};

/* What LIBCOLL_ADAPTIVE=star stands for. */
#define COLL_POLICY_DEFAULT "thompson"

/* What policies share. */

static inline double coll_margin(const struct coll_problem *problem) {
    return problem->margin > 0 ? problem->margin : 1.5;
}

static inline double coll_mean(const double *times, int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i)
        sum += times[i];
    return count > 0 ? sum / count : 0;
}

static inline double coll_least(const double *times, int count) {
    double least = times[0];
    for (int i = 1; i < count; ++i)
        least = times[i] < least ? times[i] : least;
    return least;
}

/* The lower median, of at most a few dozen times: it orders them. */
static inline double coll_median(double *times, int count) {
    for (int end = 1; end < count; ++end) {
        const double time = times[end];
        int at = end;
        for (; at > 0 && times[at - 1] > time; --at)
            times[at] = times[at - 1];
        times[at] = time;
    }
    return times[(count - 1) / 2];
}

/*
 * How much the last calls vary, as a share of a call: the standard deviation of normal times, by
 * the mean difference of neighbours, so that a step between them counts once. Calls before the last
 * `most` ones may be told as means.
 */
static inline double coll_noise(const struct coll_heard *heard, int most) {
    const int count = heard->calls < most ? heard->calls : most;
    const double *times = heard->mean_s + heard->calls - count;
    const double mean = coll_mean(times, count);
    double sum = 0;
    for (int i = 1; i < count; ++i)
        sum += times[i] > times[i - 1] ? times[i] - times[i - 1] : times[i - 1] - times[i];
    return count > 1 && mean > 0 ? 0.886 * sum / (count - 1) / mean
                                 : 0; /* half of the root of pi */
}

/*
 * What was heard without the first call, if there are others: where calls follow one another, a
 * call begins while others end the one before. After a meeting it does not, and it may take three
 * quarters of the time, or more than it, if another candidate ran before.
 */
static inline struct coll_heard coll_settled(const struct coll_heard *heard) {
    struct coll_heard settled = *heard;
    if (heard->calls > 1) {
        ++settled.mean_s;
        ++settled.max_s;
        --settled.calls;
    }
    return settled;
}

/* The least known time of all candidates, or 0; `known` is how many are known. */
static inline double coll_least_known(const struct coll_problem *problem, int *known) {
    double least = 0;
    *known = 0;
    for (int i = 0; i < problem->candidates; ++i) {
        const double time = problem->candidate[i].known_s;
        if (time > 0 && (*known)++ == 0)
            least = time;
        else if (time > 0 && time < least)
            least = time;
    }
    return least;
}

/*
 * Whether what is known lets a candidate enter: what the table chose and the native routine always;
 * the others if their known time is near enough to the least. Where at least two are known, tune
 * did not find the unknown ones worth a call.
 */
static inline int coll_enters(const struct coll_problem *problem, int candidate, double margin) {
    int known;
    const double least = coll_least_known(problem, &known);
    const struct coll_candidate *one = &problem->candidate[candidate];
    if (candidate == 0 || one->is_native || known < 2)
        return 1;
    return one->known_s > 0 && one->known_s <= margin * least;
}

/* A candidate is worth a change if it is faster by a third of epsilon. */
static inline int coll_is_worth_change(const struct coll_problem *problem, double time,
                                       double than) {
    return time * (1 + problem->epsilon / 3) <= than;
}

enum coll_watched { COLL_GOOD, COLL_EVENT, COLL_SLOW };

/*
 * Lines 27 to 37 of Fig. 4.24, as §4.3.1.2 says them: a monitoring period is good if its mean is
 * below the limit; then the next one is twice as long. It shows a special event if the mean of its
 * last ITER calls is below the limit. Otherwise the candidate is slow. Changes delta.
 */
static inline enum coll_watched coll_watch(const struct coll_problem *problem,
                                           const struct coll_heard *heard, double limit,
                                           int *delta) {
    const int last = heard->calls < problem->iterations ? heard->calls : problem->iterations;
    if (coll_mean(heard->mean_s, heard->calls) < limit) {
        *delta = *delta > problem->delta_bound / 2 ? problem->delta_bound : 2 * *delta;
        return COLL_GOOD;
    }
    *delta = problem->delta;
    return coll_mean(heard->mean_s + heard->calls - last, last) < limit ? COLL_EVENT : COLL_SLOW;
}

#endif
