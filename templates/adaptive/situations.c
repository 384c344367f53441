/* Which situation a call belongs to, and its stages. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"

/* What hangs on a communicator, made by its first call that adapts. */
static struct coll_adaptive *adaptive_of(struct coll_comm *cc) {
    static atomic_uint communicators;
    if (cc->adaptive == NULL) {
        cc->adaptive = calloc(1, sizeof *cc->adaptive);
        if (cc->adaptive != NULL)
            cc->adaptive->number = atomic_fetch_add(&communicators, 1);
    }
    return cc->adaptive;
}

/* The family of a call; *family is NULL where the sizes of the collective are taken. */
static int family_of(const struct coll_call *call, struct coll_comm *cc,
                     struct coll_family **family) {
    const enum coll_collective collective = call->collective;
    struct coll_adaptive *adaptive = adaptive_of(cc);
    if (adaptive == NULL)
        return MPI_ERR_NO_MEM;
    *family = adaptive->latest[collective];
    if (*family != NULL && (*family)->bytes == call->bytes)
        return MPI_SUCCESS;
    int *known = &adaptive->known[collective];
    for (int i = 0; i < *known; ++i) {
        *family = adaptive->families[collective][i];
        if ((*family)->bytes == call->bytes) {
            adaptive->latest[collective] = *family;
            return MPI_SUCCESS;
        }
    }
    *family = NULL;
    if (*known == coll_settings()->adaptive->sizes)
        return MPI_SUCCESS;
    *family = calloc(1, sizeof **family);
    if (*family == NULL)
        return MPI_ERR_NO_MEM;
    (*family)->collective = collective;
    (*family)->bytes = call->bytes;
    (*family)->pattern.is_off = coll_settings()->adaptive->sites == 0;
    adaptive->families[collective][(*known)++] = adaptive->latest[collective] = *family;
    return MPI_SUCCESS;
}

int coll_situation_of(const struct coll_call *call, struct coll_comm *cc,
                      struct coll_family **family, struct coll_situation **situation) {
    const struct coll_settings *settings = coll_settings();
    *situation = NULL;
    if (settings->fixed[call->collective] != NULL || settings->forced[call->collective] != NULL)
        return MPI_SUCCESS;
    COLL_TRY(family_of(call, cc, family));
    if (*family == NULL)
        return MPI_SUCCESS;
    *situation = coll_site_of(*family, call->site, settings->adaptive->sites);
    if (*situation != NULL && (*situation)->is_closed)
        *situation = NULL;
    return MPI_SUCCESS;
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
    for (int i = 0; adaptive != NULL && i < COLL_COLLECTIVES; ++i)
        for (int k = 0; k < adaptive->known[i]; ++k)
            free_family(adaptive->families[i][k]);
    free(adaptive);
}

/* Begin a stage, or close the situation if there is none. */
static int begin(struct coll_situation *situation, const struct coll_told *told) {
    situation->done = 0;
    situation->stage = (struct coll_stage){
        .candidate = told->candidate, .calls = told->calls, .is_monitoring = told->is_monitoring};
    if (told->calls == 0) {
        coll_close(situation);
        return MPI_SUCCESS;
    }
    if (told->calls <= situation->room)
        return MPI_SUCCESS;
    free(situation->ticks);
    situation->ticks = malloc((size_t)told->calls * sizeof *situation->ticks);
    situation->room = situation->ticks == NULL ? 0 : told->calls;
    return situation->ticks == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/*
 * The next stage, as rank 0 tells it. A policy that asks for an unknown candidate, or for no call,
 * ends the situation.
 */
static struct coll_told to_tell(const struct coll_situation *situation, struct coll_stage stage) {
    struct coll_told told = {.candidate = stage.candidate,
                             .calls = stage.calls < COLL_STAGE_MOST ? stage.calls : COLL_STAGE_MOST,
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

/*
 * The first call of a situation: all ranks list its candidates, which are alike, and rank 0 tells
 * the first stage.
 */
int coll_open(const struct coll_call *call, struct coll_comm *cc, struct coll_family *family,
              struct coll_situation *situation, const struct coll_option *chosen) {
    struct coll_told told = {0};
    size_t most = 2;
    for (int i = 0; i < coll_routine_count; ++i)
        most += coll_routines[i].collective == call->collective;
    situation->is_open = 1;
    situation->options = malloc(most * sizeof *situation->options);
    situation->candidates = malloc(most * sizeof *situation->candidates);
    if (situation->options == NULL || situation->candidates == NULL)
        return MPI_ERR_NO_MEM;
    situation->count =
        coll_list_options(call, cc, chosen, situation->options, situation->candidates);
    if (situation->count < 2) { /* there is nothing to choose from */
        coll_close(situation);
        return MPI_SUCCESS;
    }
    if (cc->rank == 0) {
        told = to_tell(situation, start(situation));
        situation->record = coll_learn(call, cc, family, situation);
    }
    COLL_TRY(coll_tell(cc, &told));
    return begin(situation, &told);
}

/*
 * On rank 0. The reduce also takes what rank 0 waits for late ranks, or nothing if rank 0 is the
 * late one: so the median of the latest times counts. The first ones open connections.
 */
static void note_meeting(struct coll_situation *situation, double seconds) {
    double times[COLL_MEETINGS];
    situation->meeting_s[situation->meetings++ % COLL_MEETINGS] = seconds;
    if (situation->meetings < COLL_MEETINGS)
        return;
    memcpy(times, situation->meeting_s, sizeof times);
    situation->problem.meeting_s = coll_median(times, COLL_MEETINGS);
}

/* On rank 0: what the policy says to what was heard, and what becomes of the call sites. */
static struct coll_told judge(struct coll_family *family, struct coll_situation *situation,
                              const struct coll_report *report, double begun) {
    const struct coll_policy *policy = coll_settings()->adaptive->policy;
    const struct coll_stage before = situation->stage;
    note_meeting(situation, PMPI_Wtime() - begun);
    const struct coll_stage next = policy->next(situation->state, &report->heard);
    struct coll_told told = to_tell(situation, next);
    told.verdict = coll_judge_sites(&family->pattern, report->alike, report->strange);
    if (told.verdict == COLL_SPLIT)
        told.period = coll_places(&family->pattern, told.place);
    coll_learn_stage(situation->record, &before, &report->heard, &next,
                     policy->why(situation->state), PMPI_Wtime() - begun);
    return told;
}

int coll_end_stage(const struct coll_call *call, struct coll_comm *cc, struct coll_family *family,
                   struct coll_situation *situation) {
    struct coll_told told = {0};
    struct coll_report report;
    double *room = NULL;
    const double begun = PMPI_Wtime();
    (void)call;
    int error = coll_report(cc, situation, &family->pattern, &room, &report);
    if (error == MPI_SUCCESS && cc->rank == 0)
        told = judge(family, situation, &report, begun);
    free(room);
    if (error == MPI_SUCCESS)
        error = coll_tell(cc, &told);
    if (error == MPI_SUCCESS)
        error = begin(situation, &told);
    if (error != MPI_SUCCESS)
        return error;
    family->pattern.strange = 0;
    if (told.verdict == COLL_SPLIT)
        return coll_split(family, told.period, told.place);
    if (told.verdict == COLL_FOLD)
        coll_unite(family); /* frees the situation, if it is of one site */
    return MPI_SUCCESS;
}
