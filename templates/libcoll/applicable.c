/* Which routine has a name, and which can serve a communicator. */
#include <string.h>

#include "coll.h"

const struct coll_routine *coll_find_routine(enum coll_collective collective, const char *name) {
    for (int i = 0; i < coll_routine_count; ++i)
        if (coll_routines[i].collective == collective && strcmp(coll_routines[i].name, name) == 0)
            return &coll_routines[i];
    return NULL;
}

const struct coll_routine *coll_routine_for(const struct coll_routine *routine,
                                            const struct coll_comm *cc) {
    const struct coll_routine *end = coll_routines + coll_routine_count;
    for (const struct coll_routine *other = routine;
         other < end && other->collective == routine->collective &&
         strcmp(other->name, routine->name) == 0;
         ++other)
        if (other->group == cc->group)
            return other;
    return routine;
}

/* Whether there are several parts, one of which has several ranks. */
static int is_divided(const struct coll_comm *cc, int parts) {
    return 1 < parts && parts < cc->size;
}

/* Whether the topology of a communicator is what a routine asks for. */
static int fits(const struct coll_routine *routine, const struct coll_comm *cc) {
    const int of_group = (routine->constraints & COLL_NEEDS_CLUSTER) || routine->group > 0;
    if (of_group && cc->group != routine->group)
        return 0;
    if ((routine->constraints & COLL_NEEDS_PLACES) && cc->kind < COLL_KIND_HOSTS)
        return 0;
    return !((routine->constraints & COLL_NEEDS_LEADERS) && !is_divided(cc, cc->hosts)) &&
           !((routine->constraints & COLL_NEEDS_SWITCHES) &&
             !is_divided(cc, cc->levels[COLL_LEVEL_SWITCHES].parts)) &&
           !((routine->constraints & COLL_NEEDS_SITES) &&
             !is_divided(cc, cc->levels[COLL_LEVEL_SITES].parts));
}

int coll_applicable(const struct coll_routine *routine, const struct coll_comm *cc,
                    MPI_Aint bytes) {
    if (routine->constraints & COLL_UNPREPARED)
        return 1;
    if (cc->kind == COLL_KIND_NATIVE || bytes < routine->min_bytes || bytes > routine->max_bytes)
        return 0;
    if (!fits(routine, cc))
        return 0;
    if ((routine->constraints & COLL_POWER_OF_TWO) && (cc->size & (cc->size - 1)) != 0)
        return 0;
    return 1;
}
