/*
 * The stages of a situation, and the meetings between them.
 *
 * The meeting after a trial ends before the next call: what was tried may be slow. The meeting
 * after a monitoring period goes on while the calls after it run: its reduce during the first one,
 * its broadcast during the second. So ranks that leave a call early do not wait for the others.
 * These two calls have the same candidate, and belong to the next stage if that watches it, too.
 */
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"

/*
 * Begin a stage, or close the situation if there is none. Calls that were made during the meeting
 * belong to it if it watches the same candidate.
 */
static void begin(struct coll_situation *situation, const struct coll_told *told) {
    const int before = situation->done, most = told->calls - 1; /* a call of its own ends it */
    const int goes_on = told->is_monitoring && told->candidate == situation->stage.candidate;
    situation->done = !goes_on || told->calls == 0 ? 0 : before < most ? before : most;
    situation->stage = (struct coll_stage){
        .candidate = told->candidate, .calls = told->calls, .is_monitoring = told->is_monitoring};
    situation->due = told->calls;
    coll_learn_passed(situation->record, before - situation->done);
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
    if (cc->adaptive != NULL) {
        *cc->adaptive->at_end = NULL;
        coll_leave_meeting(cc->adaptive);
    }
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
    const double begun = PMPI_Wtime();
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
    coll_learn_meeting(opened->record, PMPI_Wtime() - begun);
    opened->is_open = 1;
    begin(opened, &told);
    *situation = opened->is_closed ? NULL : opened;
    return MPI_SUCCESS;
}

/*
 * The median of the latest ones, or 0: the first time alone may be a chance one, so two must be
 * known.
 */
static double usual_price(struct coll_prices *prices, double seconds) {
    double times[COLL_MEETINGS];
    prices->seconds[prices->count++ % COLL_MEETINGS] = seconds;
    if (prices->count == 2 * COLL_MEETINGS) /* it goes on from there, and never overflows */
        prices->count = COLL_MEETINGS;
    const int known = prices->count < COLL_MEETINGS ? prices->count : COLL_MEETINGS;
    memcpy(times, prices->seconds, sizeof times);
    return known > 1 ? coll_median(times, known) : 0;
}

/*
 * On rank 0. In a meeting before the next call, ranks that come early wait for late ones, as most
 * would in that call. So it costs what it takes the rank that comes last: the least time.
 */
static void note_meeting(struct coll_situation *situation, double seconds) {
    if (seconds <= 0) /* there was no meeting before this one */
        return;
    if (situation->met_between)
        situation->problem.hidden_s = usual_price(&situation->between_calls, seconds);
    else
        situation->problem.meeting_s = usual_price(&situation->before_calls, seconds);
}

/*
 * What the policy hears. Collectives with a root let some ranks go before it has ended, and what
 * follows waits instead: so the rank that takes longest counts there. The maximum of ranks' means
 * is no mean of maxima, so only calls that were told one by one count.
 */
static struct coll_heard to_hear(enum coll_collective collective,
                                 const struct coll_report *report) {
    struct coll_heard told = report->heard;
    if (coll_has_root(collective)) {
        const int means = told.calls - report->single;
        told.max_s += means;
        told.mean_s = told.max_s;
        told.calls = report->single;
    }
    return told;
}

/* On rank 0: what the policy says to what was heard, and what becomes of the call sites. */
static struct coll_told judge(const struct coll_family *family, struct coll_situation *situation,
                              const struct coll_pattern *pattern,
                              const struct coll_report *report) {
    const struct coll_policy *policy = coll_settings()->adaptive->policy;
    const struct coll_stage before = situation->stage;
    const struct coll_heard heard = to_hear(family->collective, report);
    note_meeting(situation, report->meeting_s);
    const struct coll_stage next = policy->next(situation->state, &heard);
    struct coll_told told = to_tell(situation, next);
    told.verdict = coll_judge_sites(pattern, report->alike, report->strange);
    if (told.verdict == COLL_SPLIT)
        told.period = coll_places(pattern, told.place);
    coll_learn_stage(situation->record, &before, &report->heard, &next,
                     policy->why(situation->state));
    return told;
}

/* On all ranks, when rank 0 has told the next stage. */
static void follow(struct coll_family *family, struct coll_situation *situation,
                   const struct coll_told *told) {
    begin(situation, told);
    if (told->verdict == COLL_SPLIT) {
        coll_learn_pause(family->whole.record, 1);
        coll_split(family, told->period, told->place);
    } else if (told->verdict == COLL_FOLD) {
        coll_learn_pause(family->whole.record, 0);
        coll_unite(family); /* closes the situation, if it is of one site */
    }
}

/* A meeting before the next call. */
static int meet(struct coll_comm *cc, struct coll_family *family,
                struct coll_situation *situation) {
    struct coll_told told = {0};
    struct coll_report report;
    const double begun = PMPI_Wtime();
    COLL_TRY(coll_report(cc, situation, &family->pattern, &report));
    if (cc->rank == 0)
        told = judge(family, situation, &family->pattern, &report);
    COLL_TRY(coll_tell(cc, &told));
    family->pattern.strange = 0;
    situation->done = 0;
    situation->met_s = PMPI_Wtime() - begun;
    situation->met_between = 0;
    coll_learn_meeting(situation->record, situation->met_s);
    follow(family, situation, &told);
    return MPI_SUCCESS;
}

/* A meeting that goes on during the next two calls. */
static int begin_meeting(struct coll_comm *cc, struct coll_family *family,
                         struct coll_situation *situation) {
    struct coll_meeting *meeting = &cc->adaptive->meeting;
    const double begun = PMPI_Wtime();
    meeting->calls = situation->done;
    COLL_TRY(coll_begin_report(cc, situation, &family->pattern, &meeting->request));
    meeting->family = family;
    meeting->situation = situation;
    meeting->pattern = family->pattern;
    meeting->seconds = PMPI_Wtime() - begun;
    family->pattern.strange = 0;
    situation->done = 0;
    situation->due = 1;
    return MPI_SUCCESS;
}

/* The reduce has ended: rank 0 decides, and the broadcast begins. */
static int begin_to_tell(struct coll_comm *cc) {
    struct coll_meeting *meeting = &cc->adaptive->meeting;
    struct coll_report report;
    const double begun = PMPI_Wtime();
    COLL_TRY(PMPI_Wait(&meeting->request, MPI_STATUS_IGNORE));
    meeting->told = (struct coll_told){0};
    if (cc->rank == 0) {
        coll_read_report(cc, meeting->situation, meeting->calls, &report);
        meeting->told = judge(meeting->family, meeting->situation, &meeting->pattern, &report);
    }
    COLL_TRY(coll_begin_to_tell(cc, &meeting->told, &meeting->request));
    meeting->is_telling = 1;
    meeting->seconds += PMPI_Wtime() - begun;
    meeting->situation->due = meeting->situation->done + 1;
    return MPI_SUCCESS;
}

/* The broadcast has ended. */
static int end_meeting(struct coll_comm *cc) {
    struct coll_meeting *meeting = &cc->adaptive->meeting;
    const struct coll_meeting ended = *meeting;
    const double begun = PMPI_Wtime();
    COLL_TRY(PMPI_Wait(&meeting->request, MPI_STATUS_IGNORE));
    const double seconds = ended.seconds + PMPI_Wtime() - begun;
    ended.situation->met_s = ended.is_hurried ? 0 : seconds; /* with less time it takes longer */
    ended.situation->met_between = 1;
    coll_learn_meeting(ended.situation->record, seconds);
    const struct coll_told told = meeting->told;
    *meeting = (struct coll_meeting){.request = MPI_REQUEST_NULL};
    follow(ended.family, ended.situation, &told);
    return MPI_SUCCESS;
}

static int go_on(struct coll_comm *cc) {
    return cc->adaptive->meeting.is_telling ? end_meeting(cc) : begin_to_tell(cc);
}

/* A stage is over. What ranks tell has room for one meeting on a communicator at a time. */
static int end_stage(struct coll_comm *cc, struct coll_family *family,
                     struct coll_situation *situation) {
    while (cc->adaptive->meeting.situation != NULL) {
        cc->adaptive->meeting.is_hurried = 1;
        COLL_TRY(go_on(cc));
    }
    if (!situation->is_open) /* sites became one */
        return MPI_SUCCESS;
    return situation->stage.is_monitoring ? begin_meeting(cc, family, situation)
                                          : meet(cc, family, situation);
}

/*
 * All ranks do the same after the same call, by what they were told. After an error, the table of
 * rules serves here: MPI does not say what works after one.
 */
int coll_go_on(struct coll_comm *cc, struct coll_family *family, struct coll_situation *situation) {
    const struct coll_meeting *meeting = &cc->adaptive->meeting;
    const int error =
        meeting->situation == situation ? go_on(cc) : end_stage(cc, family, situation);
    if (error != MPI_SUCCESS) {
        if (meeting->situation != NULL)
            coll_close(meeting->situation);
        coll_leave_meeting(cc->adaptive);
        coll_close(situation);
    }
    return error;
}

/* All ranks have begun what is waited for. */
int coll_leave_meeting(struct coll_adaptive *adaptive) {
    MPI_Request *request = &adaptive->meeting.request;
    const int error =
        *request == MPI_REQUEST_NULL ? MPI_SUCCESS : PMPI_Wait(request, MPI_STATUS_IGNORE);
    adaptive->meeting = (struct coll_meeting){.request = MPI_REQUEST_NULL};
    return error;
}
