/* The candidates of a situation: found from what all ranks know, so that all have the same. */
#include "adaptive.h"

static int same(const struct coll_option *one, const struct coll_routine *routine) {
    return one->routine == routine;
}

/* Whether a routine competes there, by what its template says. */
static int competes(const struct coll_mark *mark, const struct coll_call *call,
                    const struct coll_comm *cc) {
    return mark->is_marked && call->bytes <= mark->max_bytes &&
           !(mark->without_hosts && cc->kind >= COLL_KIND_HOSTS);
}

static const struct coll_mark *mark_of(const struct coll_routine *routine) {
    return &coll_marks[routine - coll_routines];
}

/* At the parameters that tuning found best near that size, or else at the usual ones. */
static struct coll_option option_of(const struct coll_routine *routine,
                                    const struct coll_known *known) {
    return (struct coll_option){routine, known == NULL ? &routine->defaults : &known->parameters};
}

static struct coll_candidate describe(const struct coll_option *option, double known_s) {
    const struct coll_mark *mark = mark_of(option->routine);
    return (struct coll_candidate){.known_s = known_s,
                                   .group = mark->group,
                                   .is_representative = mark->is_representative,
                                   .is_native =
                                       same(option, coll_native[option->routine->collective])};
}

/* Whether the source has a set of algorithms for a collective. */
static int has_source_set(enum coll_collective collective) {
    for (int i = 0; i < coll_routine_count; ++i)
        if (coll_routines[i].collective == collective && coll_marks[i].group > 0)
            return 1;
    return 0;
}

/* What is listed so far. */
struct list {
    int count, table;
    MPI_Aint bytes;
    struct coll_option *options;
    struct coll_candidate *candidates;
};

static void put(struct list *list, struct coll_option option) {
    if (list->options != NULL) {
        list->options[list->count] = option;
        list->candidates[list->count] =
            describe(&option, coll_known_seconds(list->table, option.routine, list->bytes));
    }
    ++list->count;
}

int coll_list_options(const struct coll_call *call, struct coll_comm *cc,
                      const struct coll_option *chosen, struct coll_option *options,
                      struct coll_candidate *candidates) {
    struct list list = {.table = coll_table_number(call->collective, cc),
                        .bytes = call->bytes,
                        .options = options,
                        .candidates = candidates};
    const int of_source =
        coll_settings()->adaptive->policy->source_sets && has_source_set(call->collective);
    const struct coll_routine *native = coll_native[call->collective];
    if (!of_source)
        put(&list, *chosen);
    if (!of_source && !same(chosen, native))
        put(&list, option_of(native, NULL));
    for (int i = 0; i < coll_routine_count; ++i) {
        const struct coll_routine *routine = &coll_routines[i];
        const struct coll_mark *mark = &coll_marks[i];
        if (routine->collective != call->collective || !competes(mark, call, cc) ||
            (of_source ? mark->group == 0 : same(chosen, routine)))
            continue;
        const struct coll_option option =
            option_of(routine, coll_find_known(list.table, routine, call->bytes));
        if (coll_can(routine, option.parameters, call, cc))
            put(&list, option);
    }
    return list.count;
}
