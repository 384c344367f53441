/* Which situation a call belongs to, and its stages. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"

/* What hangs on a communicator, made by its first call that adapts; NULL if there is no memory. */
static struct coll_adaptive *adaptive_of(struct coll_comm *cc) {
    static atomic_uint communicators;
    const size_t room = (size_t)coll_stage_most() + COLL_STAGE_FACTS;
    if (cc->adaptive != NULL)
        return cc->adaptive;
    struct coll_adaptive *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->own = malloc(room * sizeof *made->own);
    if (cc->rank == 0) {
        made->all = malloc(room * sizeof *made->all);
        made->times = malloc(2 * room * sizeof *made->times);
    }
    if (made->own == NULL || (cc->rank == 0 && (made->all == NULL || made->times == NULL))) {
        coll_free_adaptive(made);
        return NULL;
    }
    made->number = atomic_fetch_add(&communicators, 1);
    cc->adaptive = made;
    return made;
}

static struct coll_family *find_family(const struct coll_adaptive *adaptive,
                                       const struct coll_call *call) {
    struct coll_family *const *families = adaptive->families[call->collective];
    for (int i = 0; i < adaptive->known[call->collective]; ++i)
        if (families[i]->bytes == call->bytes)
            return families[i];
    return NULL;
}

static struct coll_family *make_family(struct coll_adaptive *adaptive,
                                       const struct coll_call *call) {
    const size_t sites = (size_t)coll_settings()->adaptive->sites;
    struct coll_family *made = calloc(1, sizeof *made + sites * sizeof made->of_site[0]);
    if (made == NULL)
        return NULL;
    made->collective = call->collective;
    made->bytes = call->bytes;
    made->pattern.is_off = sites == 0;
    adaptive->families[call->collective][adaptive->known[call->collective]++] = made;
    return made;
}

int coll_adapts(const struct coll_call *call, struct coll_comm *cc, struct coll_family **family,
                struct coll_situation **situation) {
    const struct coll_settings *settings = coll_settings();
    *situation = NULL;
    if (cc->no_adaptive || settings->fixed[call->collective] != NULL ||
        settings->forced[call->collective] != NULL)
        return 0;
    struct coll_adaptive *adaptive = adaptive_of(cc);
    if (adaptive == NULL)
        return 1;
    *family = adaptive->latest[call->collective];
    if (*family == NULL || (*family)->bytes != call->bytes) {
        *family = find_family(adaptive, call);
        if (*family == NULL && adaptive->known[call->collective] == settings->adaptive->sizes)
            return 0;
        if (*family == NULL)
            *family = make_family(adaptive, call);
        if (*family == NULL)
            return 1;
        adaptive->latest[call->collective] = *family;
    }
    *situation = coll_site_of(*family, call->site, settings->adaptive->sites);
    if (*situation != NULL && (*situation)->is_closed)
        *situation = NULL;
    return *situation != NULL;
}

/* What a situation holds, but for its record, which stays to the end. */
void coll_close(struct coll_situation *situation) {
    free(situation->options);
    free(situation->candidates);
    free(situation->ticks);
    free(situation->state);
    *situation = (struct coll_situation){.is_closed = 1};
}

static void free_family(struct coll_family *family) {
    coll_unite(family);
    coll_close(&family->whole);
    free(family);
}

/* With the communicator. */
void coll_free_adaptive(struct coll_adaptive *adaptive) {
    if (adaptive == NULL)
        return;
    for (int i = 0; i < COLL_COLLECTIVES; ++i)
        for (int k = 0; k < adaptive->known[i]; ++k)
            free_family(adaptive->families[i][k]);
    free(adaptive->own);
    free(adaptive->all);
    free(adaptive->times);
    free(adaptive);
}

/* Begin a stage, or close the situation if there is none. */
static void begin(struct coll_situation *situation, const struct coll_told *told) {
    situation->done = 0;
    situation->stage = (struct coll_stage){
        .candidate = told->candidate, .calls = told->calls, .is_monitoring = told->is_monitoring};
    if (told->calls == 0)
        coll_close(situation);
}

/*
 * The next stage, as rank 0 tells it. A policy that asks for an unknown candidate, or for no call,
 * ends the situation.
 */
static struct coll_told to_tell(const struct coll_situation *situation, struct coll_stage stage) {
    const int most = coll_stage_most();
    struct coll_told told = {.candidate = stage.candidate,
                             .calls = stage.calls < most ? stage.calls : most,
                             .is_monitoring = stage.is_monitoring};
    if (stage.candidate < 0 || stage.candidate >= situation->count || stage.calls < 1)
        told.calls = 0;
    return told;
}

/* On rank 0: the policy, and its first stage. */
static struct coll_stage start(struct coll_situation *situation) {
    const struct coll_options *options = coll_settings()->adaptive;
    situation->problem = (struct coll_problem){.candidates = situation->count,
                                               .candidate = situation->candidates,
                                               .iterations = options->iterations,
                                               .epsilon = options->epsilon,
                                               .delta = options->delta,
                                               .delta_bound = options->delta_bound,
                                               .seed = options->seed};
    situation->state = calloc(1, options->policy->bytes(&situation->problem));
    if (situation->state == NULL)
        return (struct coll_stage){0, 0, 0};
    options->policy->start(situation->state, &situation->problem);
    return options->policy->next(situation->state, NULL);
}

/* The candidates, and room for the times of a stage: whether there is memory for them. */
static int fill(struct coll_situation *situation, int count, const struct coll_call *call,
                struct coll_comm *cc, const struct coll_option *chosen) {
    situation->options = malloc((size_t)count * sizeof *situation->options);
    situation->candidates = malloc((size_t)count * sizeof *situation->candidates);
    situation->ticks = malloc((size_t)coll_stage_most() * sizeof *situation->ticks);
    if (situation->options == NULL || situation->candidates == NULL || situation->ticks == NULL)
        return 0;
    situation->count =
        coll_list_options(call, cc, chosen, situation->options, situation->candidates);
    return 1;
}

/* A rank has no memory for a situation: nothing adapts there any more. */
static void give_up(struct coll_comm *cc) {
    coll_free_adaptive(cc->adaptive);
    cc->adaptive = NULL;
    cc->no_adaptive = 1;
}

/*
 * The first call of a situation: all ranks list its candidates, which are alike, and rank 0 tells
 * the first stage. Where one rank has no memory, no rank goes on.
 */
int coll_open(const struct coll_call *call, struct coll_comm *cc, struct coll_family *family,
              struct coll_situation **situation, const struct coll_option *chosen) {
    struct coll_situation *opened = *situation;
    struct coll_told told = {0};
    int all = 0;
    *situation = NULL;
    const int count = coll_list_options(call, cc, chosen, NULL, NULL);
    if (count >= 2)
        COLL_TRY(coll_comm_private(call->comm, cc));
    if (count < 2 || cc->kind == COLL_KIND_NATIVE) /* there is nothing to choose from */
        return MPI_SUCCESS;
    const int own = opened != NULL && coll_can_meet() && fill(opened, count, call, cc, chosen);
    int error = coll_ask_all(cc, own, &all);
    if (error == MPI_SUCCESS && cc->rank == 0 && all) {
        told = to_tell(opened, start(opened));
        opened->record = coll_learn(call, cc, family, opened);
    }
    told.gives_up = !all;
    if (error == MPI_SUCCESS)
        error = coll_tell(cc, &told);
    if (error != MPI_SUCCESS || told.gives_up) {
        give_up(cc);
        return error;
    }
    opened->is_open = 1;
    begin(opened, &told);
    *situation = opened->is_closed ? NULL : opened;
    return MPI_SUCCESS;
}

/*
 * On rank 0. Ranks that come early wait in a meeting for late ones, as most would in the next call.
 * So what a meeting costs is what it takes the rank that comes last: the least time. The first time
 * alone may be a chance one, so two must be known.
 */
static void note_meeting(struct coll_situation *situation, double seconds) {
    double times[COLL_MEETINGS];
    if (seconds <= 0) /* there was no meeting before this one */
        return;
    situation->meeting_s[situation->meetings++ % COLL_MEETINGS] = seconds;
    const int known = situation->meetings < COLL_MEETINGS ? situation->meetings : COLL_MEETINGS;
    memcpy(times, situation->meeting_s, sizeof times);
    if (known > 1)
        situation->problem.meeting_s = coll_median(times, known);
}

/*
 * What the policy hears. Collectives with a root let some ranks go before it has ended, and what
 * follows waits instead: so the rank that takes longest counts there.
 */
static struct coll_heard to_hear(enum coll_collective collective, const struct coll_heard *heard) {
    struct coll_heard told = *heard;
    if (coll_has_root(collective))
        told.mean_s = heard->max_s;
    return told;
}

/* On rank 0: what the policy says to what was heard, and what becomes of the call sites. */
static struct coll_told judge(struct coll_family *family, struct coll_situation *situation,
                              const struct coll_report *report) {
    const struct coll_policy *policy = coll_settings()->adaptive->policy;
    const struct coll_stage before = situation->stage;
    const struct coll_heard heard = to_hear(family->collective, &report->heard);
    note_meeting(situation, report->meeting_s);
    const struct coll_stage next = policy->next(situation->state, &heard);
    struct coll_told told = to_tell(situation, next);
    told.verdict = coll_judge_sites(&family->pattern, report->alike, report->strange);
    if (told.verdict == COLL_SPLIT)
        told.period = coll_places(&family->pattern, told.place);
    coll_learn_stage(situation->record, &before, &report->heard, &next,
                     policy->why(situation->state));
    return told;
}

/* After an error, the table of rules serves here: MPI does not say what works after one. */
int coll_end_stage(struct coll_comm *cc, struct coll_family *family,
                   struct coll_situation *situation) {
    struct coll_told told = {0};
    struct coll_report report;
    const double begun = PMPI_Wtime();
    int error = coll_report(cc, situation, &family->pattern, &report);
    if (error == MPI_SUCCESS && cc->rank == 0)
        told = judge(family, situation, &report);
    if (error == MPI_SUCCESS)
        error = coll_tell(cc, &told);
    if (error != MPI_SUCCESS) {
        coll_close(situation);
        return error;
    }
    situation->met_s = PMPI_Wtime() - begun;
    coll_learn_meeting(situation->record, situation->met_s);
    begin(situation, &told);
    family->pattern.strange = 0;
    if (told.verdict == COLL_SPLIT) {
        coll_learn_pause(family->whole.record, 1);
        coll_split(family, told.period, told.place);
    } else if (told.verdict == COLL_FOLD) {
        coll_learn_pause(family->whole.record, 0);
        coll_unite(family); /* closes the situation, if it is of one site */
    }
    return MPI_SUCCESS;
}
