/* Compositions: routines that are made of calls of other collectives. */
#include <limits.h>

#define COLL_UNTRACED /* see events.h */
#include "coll.h"

/* Whether a routine can do a part of so many bytes. */
static int can(const struct coll_routine *routine, double bytes, int ordered,
               const struct coll_comm *cc) {
    return coll_applicable(routine, cc, (MPI_Aint)bytes) &&
           !(ordered && (routine->constraints & COLL_COMMUTATIVE));
}

/* Whether those that serve the parts of a composition can do them; true of other routines. */
int coll_parts_can(const struct coll_routine *routine, const struct coll_parameters *parameters,
                   const struct coll_call *call, const struct coll_comm *cc) {
    for (int i = 0; i < COLL_PARTS_MOST; ++i) {
        const double bytes = coll_part_bytes(routine, i, call, cc);
        if (bytes > INT_MAX)
            return 0;
        if (bytes > 0 && parameters->parts != NULL &&
            !can(coll_routine_for(parameters->parts[i].routine, cc), bytes, call->ordered, cc))
            return 0;
    }
    return 1;
}

/* Whether operands do not meet in the order of the ranks, in the routine or in a part. */
int coll_reorders(const struct coll_routine *routine, const struct coll_parameters *parameters) {
    int constraints = routine->constraints;
    for (int i = 0; i < COLL_PARTS_MOST && parameters->parts != NULL; ++i)
        if (coll_part_collective(routine, i) != COLL_COLLECTIVES)
            constraints |= parameters->parts[i].routine->constraints;
    return (constraints & COLL_COMMUTATIVE) != 0;
}

/*
 * Make the call of a part, whose arguments are given. Where blocks differ, coll_part_bytes() is the
 * most that the part may have: so its routine is looked up again, and all ranks find the same.
 */
int coll_run_part(const struct coll_parameters *parameters, int which, struct coll_call part,
                  const struct coll_comm *cc) {
    const struct coll_descriptor *descriptor = &coll_descriptors[part.collective];
    const struct coll_part none = {.routine = coll_native[part.collective]};
    const struct coll_part *bound = parameters->parts == NULL ? &none : &parameters->parts[which];
    const struct coll_routine *routine = coll_routine_for(bound->routine, cc);
    part.comm = cc->comm;
    part.spaced = 0; /* that was of the whole call */
    COLL_TRY(coll_views[part.collective]->measure(&part));
    if (part.bytes == 0 && !descriptor->unsized)
        return MPI_SUCCESS;
    if (!can(routine, (double)part.bytes, part.ordered, cc))
        routine = none.routine;
    if (routine->constraints & COLL_UNPREPARED)
        return routine->run(&part, cc, &bound->parameters);
    if (descriptor->reduces)
        return coll_run_reduction(routine, &part, cc, &bound->parameters);
    return coll_run_inside(routine, &part, cc, &bound->parameters);
}
