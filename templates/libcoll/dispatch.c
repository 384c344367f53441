/* Which routine serves a call; the entry points of collectives are made of it. */
#include <limits.h>
#include <stddef.h>
#include <string.h>

#ifdef COLL_ADAPTIVE
#include "adaptive.h"
#include "ticks.h"
#else
#include "dispatch.h"
#endif
#include "libcoll.h"

enum { SHORT = 8 * 1024 /* bytes of the longest short call: it alone is worth no duplicate */ };

struct choice {
    const struct coll_routine *routine;
    const struct coll_parameters *parameters;
};

static struct choice native_for(const struct coll_call *call) {
    return (struct choice){coll_native[call->collective], NULL};
}

/* Whether all calls there are native, on all ranks alike. */
static int is_native(const struct coll_comm *cc) {
    return cc->kind == COLL_KIND_NATIVE || coll_settings()->gpu_support != NULL;
}

/*
 * The parts of a reduction get the application's types. Where its elements reach over others,
 * pieces of a vector are not such vectors. Only the application's own operations take such
 * elements: whole calls serve these.
 */
static int fits_parts(const struct coll_routine *routine, const struct coll_call *call) {
    return !(routine->constraints & COLL_OF_PARTS) || !coll_descriptors[call->collective].reduces ||
           coll_is_lasting(MPI_BYTE, call->op);
}

/* Whether a routine can do a call there, with the memory that it may take. */
static int can(const struct coll_routine *routine, const struct coll_parameters *parameters,
               const struct coll_call *call, const struct coll_comm *cc) {
    return coll_applicable(routine, cc, call->bytes) &&
           !(call->ordered && (routine->constraints & COLL_COMMUTATIVE)) &&
           fits_parts(routine, call) && coll_parts_can(routine, parameters, call, cc) &&
           coll_scratch_ok(routine, parameters, call, cc);
}

int coll_can(const struct coll_routine *routine, const struct coll_parameters *parameters,
             const struct coll_call *call, const struct coll_comm *cc) {
    return can(routine, parameters, call, cc);
}

/*
 * The first that can of those that were tuned for this size and communicator, of which the native
 * routine is the last; and that one where nothing was tuned.
 */
static struct choice first_able(const struct coll_rule *rule, const struct coll_call *call,
                                const struct coll_comm *cc) {
    while (!can(rule->routine, &rule->parameters, call, cc))
        ++rule;
    return (struct choice){rule->routine, &rule->parameters};
}

static struct choice tuned(const struct coll_call *call, struct coll_comm *cc) {
    const struct coll_rule *rule = coll_find_rule(call->collective, cc, call->bytes);
    return rule == NULL ? native_for(call) : first_able(rule, call, cc);
}

/* Sizes that the MPI library serves on every communicator. */
static int for_native(const struct coll_call *call) {
    return call->bytes > INT_MAX ||
           (call->bytes == 0 && !coll_descriptors[call->collective].unsized);
}

/*
 * Choose from what is equal on all ranks, and from nothing else: the message size, the
 * communicator's kind and size, whether the operation commutes, and the environment.
 */
static struct choice choose(const struct coll_call *call, struct coll_comm *cc) {
    if (is_native(cc) || for_native(call) || call->root >= cc->size)
        return native_for(call);
    const struct coll_routine *fixed = coll_settings()->fixed[call->collective];
    if (fixed != NULL)
        return (struct choice){fixed, &fixed->defaults};
    const struct choice by_rule = tuned(call, cc);
    const struct coll_routine *named = coll_settings()->forced[call->collective];
    const struct coll_routine *forced = named == NULL ? NULL : coll_routine_for(named, cc);
    if (forced == NULL || forced == by_rule.routine || !can(forced, &forced->defaults, call, cc))
        return by_rule;
    return (struct choice){forced, &forced->defaults};
}

#ifdef COLL_PATTERNS
/* Whether calls like this are looked at for their pattern: alike on all ranks. */
static int is_watched(const struct coll_call *call, const struct coll_comm *cc) {
    const struct coll_settings *settings = coll_settings();
    return coll_has_patterns(call->collective, cc->group) && !is_native(cc) && !for_native(call) &&
           settings->forced[call->collective] == NULL && settings->fixed[call->collective] == NULL;
}

/* The choice for a call whose pattern all ranks have agreed on; else its routine stays NULL. */
static int find_agreed(const struct coll_call *call, struct coll_comm *cc, struct choice *found) {
    const struct coll_pattern_entry *entry = NULL;
    if (is_watched(call, cc))
        COLL_TRY(coll_recognise(call, cc, &entry));
    if (entry != NULL && !is_native(cc))
        *found = first_able(entry->rule, call, cc);
    return MPI_SUCCESS;
}

#else
static int find_agreed(const struct coll_call *call, struct coll_comm *cc, struct choice *found) {
    (void)call;
    (void)cc;
    (void)found;
    return MPI_SUCCESS;
}

#endif
/* What is known of a communicator; if that it is native, its calls will not come here again. */
static int look_up(MPI_Comm comm, struct coll_comm **cc) {
    coll_watch_world();
    COLL_TRY(coll_comm_get(comm, cc));
    if (is_native(*cc))
        coll_cache_native(comm);
    return MPI_SUCCESS;
}

/* For calls that are native anyway: a single rank is looked up, where that is not collective. */
static int look_up_alone(MPI_Comm comm) {
    struct coll_comm *cc;
    int size;
    COLL_TRY(PMPI_Comm_size(comm, &size));
    if (size > 1)
        return MPI_SUCCESS;
    COLL_TRY(look_up(comm, &cc));
    coll_trace_communicator(comm, cc);
    return MPI_SUCCESS;
}

/*
 * Whether a call is worth a private duplicate of its communicator, if it has none: decided alike on
 * all ranks, as they make the same calls there. A duplicate takes as long as several short calls,
 * and some programs make many communicators for a few short calls each. So the first of these are
 * native, except on MPI_COMM_WORLD, which a program has only once.
 */
static int is_worth_duplicate(const struct coll_call *call, struct coll_comm *cc) {
    const struct coll_settings *settings = coll_settings();
    const struct coll_descriptor *descriptor = &coll_descriptors[call->collective];
    const int has_blocks =
        !descriptor->whole && (descriptor->send == COLL_ALL || descriptor->recv == COLL_ALL);
    if (cc->comm != MPI_COMM_NULL || call->comm == MPI_COMM_WORLD ||
        call->bytes > SHORT / (has_blocks ? cc->size : 1) ||
        (descriptor->unsized && descriptor->send != COLL_NOTHING) ||
        settings->forced[call->collective] != NULL || settings->fixed[call->collective] != NULL)
        return 1;
    return ++cc->short_calls > settings->short_calls;
}

/*
 * Before a routine serves, its communicator needs a private duplicate. *is_held says that the call
 * is native only as it is not worth one yet: the next call like it may be.
 */
static int get_ready(const struct coll_call *call, struct coll_comm *cc, struct choice *found,
                     int *is_held) {
    const int is_of_mpi = found->routine == coll_native[call->collective];
    *is_held = !is_of_mpi && !is_worth_duplicate(call, cc);
    if (*is_held) {
        *found = native_for(call);
    } else if (!is_of_mpi) {
        COLL_TRY(coll_comm_private(call->comm, cc));
        if (is_native(cc)) /* there can be no private communicator */
            *found = native_for(call);
    }
    coll_trace_communicator(call->comm, cc);
    return MPI_SUCCESS;
}

/* The routine for `call`. The first calls on a communicator are collective in here. */
static int find_choice(const struct coll_call *call, struct coll_comm **cc, struct choice *found,
                       int *is_held) {
    COLL_TRY(look_up(call->comm, cc));
    *found = (struct choice){NULL, NULL};
    COLL_TRY(find_agreed(call, *cc, found));
    if (found->routine == NULL)
        *found = choose(call, *cc);
    return get_ready(call, *cc, found, is_held);
}

/* The first rule for a call by what its rank knows without asking: that of its class, or of all. */
static int find_own_rule(const struct coll_call *call, struct coll_comm *cc,
                         const struct coll_rule **rule) {
#ifdef COLL_PATTERNS
    const struct coll_pattern_entry *entry = NULL;
    if (call->collective != COLL_ALLTOALLV && is_watched(call, cc))
        COLL_TRY(coll_recognise(call, cc, &entry));
    if (entry != NULL) {
        *rule = entry->rule;
        return MPI_SUCCESS;
    }
#endif
    *rule = coll_find_rule(call->collective, cc, call->bytes);
    return MPI_SUCCESS;
}

int coll_choose(const struct coll_call *call, struct coll_comm **cc,
                const struct coll_routine **routine, const struct coll_rule **rule, int *error) {
    const struct coll_settings *settings = coll_settings();
    *error = MPI_SUCCESS;
    *rule = NULL;
    if (for_native(call))
        return 0;
    *error = look_up(call->comm, cc);
    if (*error != MPI_SUCCESS)
        return 1;
    if (is_native(*cc) || call->root >= (*cc)->size)
        return 0;
    if (settings->forced[call->collective] == NULL && settings->fixed[call->collective] == NULL)
        *error = find_own_rule(call, *cc, rule);
    *routine = (*rule == NULL ? choose(call, *cc) : first_able(*rule, call, *cc)).routine;
    return 1;
}

#ifdef COLL_ADAPTIVE
/* Which routine served the latest call of a thread. */
static _Thread_local const struct coll_routine *latest;

LIBCOLL_EXPORT const char *libcoll_latest(void) {
    return latest == NULL ? "native" : latest->name;
}

#endif
static void note_latest(const struct coll_routine *routine) {
#ifdef COLL_ADAPTIVE
    latest = routine;
#else
    (void)routine;
#endif
}

/* Run a call, of the native routine, too, for LIBCOLL_TRACE=json:FILE. */
static int run_timed(const struct choice *choice, const struct coll_call *call,
                     struct coll_comm *cc, int *error) {
    struct coll_histogram_entry *entry = coll_histogram_find(call, cc, choice->routine);
    const double start = PMPI_Wtime();
    const int is_of_mpi = choice->routine == coll_native[call->collective];
    *error = is_of_mpi ? choice->routine->run(call, NULL, NULL)
                       : coll_run(choice->routine, call, cc, choice->parameters);
    coll_histogram_add(entry, PMPI_Wtime() - start);
    if (*error != MPI_SUCCESS && !is_of_mpi)
        PMPI_Comm_call_errhandler(call->comm, *error);
    return 1;
}

#ifdef COLL_ADAPTIVE
/* The situation of a call, opened; NULL where the table of rules serves, on all ranks alike. */
static int find_situation(const struct coll_call *call, struct coll_comm *cc,
                          struct coll_family **family, struct coll_situation **situation,
                          int *is_held) {
    *situation = NULL;
    if (is_native(cc) || for_native(call) || call->root >= cc->size || cc->no_adaptive)
        return MPI_SUCCESS;
    /* Before anything is kept of the call: what ranks keep must be alike, even without memory. */
    *is_held = cc->comm == MPI_COMM_NULL && !is_worth_duplicate(call, cc);
    if (*is_held || !coll_adapts(call, cc, family, situation) ||
        (*situation != NULL && (*situation)->is_open))
        return MPI_SUCCESS;
    const struct choice by_rule = choose(call, cc);
    const struct coll_option chosen = {by_rule.routine, by_rule.parameters};
    COLL_TRY(coll_open(call, cc, *family, situation, &chosen));
    if (*situation != NULL)
        coll_trace_communicator(call->comm, cc);
    return MPI_SUCCESS;
}

/*
 * What serves a call where calls adapt: the rule of its pattern, the candidate of its situation's
 * stage, or the table of rules. A call that the candidate cannot do counts for no stage: whether it
 * can follows from what all ranks know.
 */
static int choose_adaptively(const struct coll_call *call, struct coll_comm *cc,
                             struct coll_family **family, struct coll_situation **situation,
                             struct choice *found) {
    int is_held = 0;
    *found = (struct choice){NULL, NULL};
    COLL_TRY(find_agreed(call, cc, found));
    if (found->routine == NULL)
        COLL_TRY(find_situation(call, cc, family, situation, &is_held));
    if (*situation != NULL) {
        const struct coll_option *option = &(*situation)->options[(*situation)->stage.candidate];
        if (can(option->routine, option->parameters, call, cc)) {
            *found = (struct choice){option->routine, option->parameters};
            return MPI_SUCCESS;
        }
        *situation = NULL;
    }
    if (found->routine == NULL)
        *found = choose(call, cc);
    if (!is_held)
        return get_ready(call, cc, found, &is_held);
    *found = native_for(call);
    coll_trace_communicator(call->comm, cc);
    return MPI_SUCCESS;
}

/* As `serve`, where calls adapt. */
static int serve_adaptively(const struct coll_call *call, int *error) {
    struct coll_comm *cc = NULL;
    struct coll_family *family = NULL;
    struct coll_situation *situation = NULL;
    struct choice choice = native_for(call);
    *error = for_native(call) ? look_up_alone(call->comm) : look_up(call->comm, &cc);
    if (*error == MPI_SUCCESS && cc != NULL)
        *error = choose_adaptively(call, cc, &family, &situation, &choice);
    if (*error == MPI_SUCCESS) {
        note_latest(choice.routine);
        coll_trace_count(choice.routine, call->bytes);
        struct coll_histogram_entry *entry = coll_histogram_find(call, cc, choice.routine);
        const double start = entry == NULL ? 0 : PMPI_Wtime();
        const uint64_t begin = coll_ticks();
        const int is_of_mpi = choice.routine == coll_native[call->collective];
        *error = is_of_mpi ? choice.routine->run(call, NULL, NULL)
                           : coll_run(choice.routine, call, cc, choice.parameters);
        const uint64_t end = coll_ticks(); /* of another processor's counter it may be earlier */
        if (entry != NULL)
            coll_histogram_add(entry, PMPI_Wtime() - start);
        /*
         * A rank on which MPI's routine failed counts the call: the others do. If ours failed, the
         * others may still be in it, so nobody would come to a meeting.
         */
        const int counts = situation != NULL && (*error == MPI_SUCCESS || is_of_mpi);
        const int met =
            counts ? coll_took(cc, family, situation, end > begin ? end - begin : 0) : MPI_SUCCESS;
        if (*error != MPI_SUCCESS && is_of_mpi)
            return 1; /* it has been told */
        if (*error == MPI_SUCCESS)
            *error = met;
    }
    if (*error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, *error);
    return 1;
}

#endif
/*
 * Serve `call` and return 1, or return 0 where the MPI library is to do it. Whether ranks meet
 * in here must not depend on a rank alone, so the sizes that are native anyway come first. The
 * errors that arrive here have not been told to the communicator's error handler yet.
 */
static int serve(const struct coll_call *call, int *error) {
#ifdef COLL_ADAPTIVE
    if (coll_settings()->adaptive != NULL)
        return serve_adaptively(call, error);
#endif
    struct coll_comm *cc = NULL;
    struct choice choice = native_for(call);
    int is_held = 0;
    *error =
        for_native(call) ? look_up_alone(call->comm) : find_choice(call, &cc, &choice, &is_held);
    if (*error == MPI_SUCCESS) {
        note_latest(choice.routine);
        coll_trace_count(choice.routine, call->bytes);
        if (coll_settings()->histogram != NULL)
            return run_timed(&choice, call, cc, error);
        if (choice.routine == coll_native[call->collective]) {
#ifdef COLL_PATTERNS
            if (cc != NULL && is_watched(call, cc)) /* calls are counted, or told apart by more */
                return 0;
#endif
            /* Ranks find different calls here, so what they count must not depend on it. */
            if (!is_held && (cc != NULL || call->bytes == 0)) /* else nothing tells of a free */
                coll_cache_native_call(call);
            return 0;
        }
        *error = coll_run(choice.routine, call, cc, choice.parameters);
    }
    if (*error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, *error);
    return 1;
}

/* Off by the environment, or on that communicator: alike on all ranks. */
int coll_off(MPI_Comm comm) {
    return coll_settings()->disabled || coll_is_over(comm) || coll_is_dying(comm);
}

/* Native whatever the call is, and not counted: there is nothing to find out. */
static int passes(const struct coll_call *call) {
    if (coll_settings()->tracing)
        return coll_off(call->comm);
#ifdef COLL_ADAPTIVE
    if (coll_settings()->adaptive != NULL)
        return coll_cached_native(call->comm) || coll_off(call->comm);
#endif
    return coll_cached_native(call->comm) || coll_cached_native_call(call) || coll_off(call->comm);
}

int coll_enter(struct coll_call *call) {
    int error = MPI_SUCCESS;
#ifdef COLL_ADAPTIVE
    if (coll_settings()->adaptive != NULL && coll_fortran_site != NULL)
        call->site = coll_fortran_site;
#endif
    if (!passes(call) && call->comm != MPI_COMM_NULL && coll_valid(call, &error) &&
        coll_views[call->collective]->measure(call) == MPI_SUCCESS && serve(call, &error))
        return error;
    if (error != MPI_SUCCESS) /* of the communicator, which has been freed; it has been told */
        return error;
    note_latest(coll_native[call->collective]);
    return coll_native[call->collective]->run(call, NULL, NULL);
}

LIBCOLL_EXPORT const char *libcoll_choice(const char *collective, MPI_Aint bytes, MPI_Comm comm) {
    struct coll_comm *cc = NULL;
    if (!coll_off(comm) && coll_comm_get(comm, &cc) != MPI_SUCCESS)
        return NULL;
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        struct coll_call call = {
            .collective = (enum coll_collective)i, .recv_type = MPI_BYTE, .bytes = bytes};
        if (coll_descriptors[i].unsized)
            call.bytes = 0;
        if (strcmp(coll_collective_names[i], collective) == 0)
            return coll_off(comm) ? "native" : choose(&call, cc).routine->name;
    }
    return NULL;
}

LIBCOLL_EXPORT const char *libcoll_version(void) {
    return LIBCOLL_VERSION;
}

LIBCOLL_EXPORT const char *libcoll_cluster(void) {
    return coll_cluster_name;
}

LIBCOLL_EXPORT const char *libcoll_topology_hash(void) {
    return coll_cluster_hash;
}
