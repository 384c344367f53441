/* LIBCOLL_SCRATCH: how much memory a call may take, decided alike on all ranks. */
#include <math.h>

#include "dispatch.h"
#include "formula.h"

/*
 * What a call allocates at most on any rank is found from what all ranks know. If some rank may
 * have to copy its data, because it is in place or has gaps, all ranks count as if they had to.
 * Only data counts, as packed bytes. These do not: gaps between the elements of a reduction,
 * requests, and tables of at most 64 bytes a rank.
 */

/*
 * What the parts of a composition allocate: they run one after the other. The parts of what is no
 * reduction have bytes: the type that the application gives may be none on this rank, and another
 * one elsewhere.
 */
static double of_parts(const struct coll_routine *routine, const struct coll_parameters *parameters,
                       const struct coll_call *call, const struct coll_comm *cc) {
    double most = 0;
    const MPI_Datatype type =
        coll_descriptors[call->collective].reduces ? call->recv_type : MPI_BYTE;
    for (int i = 0; i < COLL_PARTS_MOST && parameters->parts != NULL; ++i) {
        const double bytes = coll_part_bytes(routine, i, call, cc);
        const struct coll_part *part = &parameters->parts[i];
        const struct coll_call one = {.collective = coll_part_collective(routine, i),
                                      .recv_type = type,
                                      .bytes = (MPI_Aint)bytes};
        if (bytes < 0)
            break;
        if (!(part->routine->constraints & COLL_UNPREPARED))
            most = larger(most, coll_scratch(part->routine, &part->parameters, &one, cc));
    }
    return most;
}

double coll_scratch(const struct coll_routine *routine, const struct coll_parameters *parameters,
                    const struct coll_call *call, const struct coll_comm *cc) {
    const struct coll_view *view = coll_views[call->collective];
    const int dense = (routine->constraints & COLL_DENSE) != 0;
    const int has_view =
        !coll_descriptors[call->collective].reduces || !(routine->constraints & COLL_OF_PARTS);
    const double copies =
        has_view && view->copies != NULL ? view->copies(call, cc->size, dense) : 0;
    return copies + coll_routine_scratch(routine, parameters, call, cc) +
           of_parts(routine, parameters, call, cc);
}

int coll_scratch_ok(const struct coll_routine *routine, const struct coll_parameters *parameters,
                    const struct coll_call *call, const struct coll_comm *cc) {
    if (routine->constraints & COLL_UNPREPARED)
        return 1;
    const struct coll_settings *settings = coll_settings();
    const double bytes = coll_scratch(routine, parameters, call, cc);
    return bytes <= settings->scratch_most || (isinf(bytes) && !settings->scratch_is_set);
}
