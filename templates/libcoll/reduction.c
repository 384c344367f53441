/* Reductions: elements of any datatype, and operands in the order that they ask for. */
#include <limits.h>
#include <stdlib.h>

#include "coll.h"

/* Whether an operation is one of MPI's that commute, which MPI need not be asked. */
static int is_known_to_commute(MPI_Op op) {
    static const MPI_Op known[] = {MPI_SUM,  MPI_MAX, MPI_MIN,  MPI_PROD, MPI_LAND,   MPI_LOR,
                                   MPI_LXOR, MPI_BOR, MPI_BAND, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (op == known[i])
            return 1;
    return 0;
}

/* For collectives whose size is that of all elements: bytes, and whether the order matters. */
int coll_measure_reduction(struct coll_call *call) {
    int commutes = is_known_to_commute(call->op);
    if (!commutes)
        COLL_TRY(PMPI_Op_commutative(call->op, &commutes));
    call->ordered = !commutes;
    return coll_packed_bytes(call->recv_count, call->recv_type, &call->bytes);
}

/*
 * The memory of elements: `bytes` from `low` on, counted from their address. They may begin before
 * it (a negative lower bound), lie apart, overlap, or go downwards (a negative extent). Operations
 * of the application may assign whole elements, with the gaps at their ends.
 */
int coll_span(const struct coll_call *call, MPI_Count count, MPI_Aint *low, MPI_Aint *bytes) {
    MPI_Aint lower_bound, extent;
    COLL_TRY(PMPI_Type_get_extent(call->recv_type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_get_true_extent(call->recv_type, low, bytes));
    if (extent > 0) {
        const MPI_Aint end = *low + *bytes, whole = lower_bound + extent;
        *low = lower_bound < *low ? lower_bound : *low;
        *bytes = (whole > end ? whole : end) - *low;
    }
    const MPI_Aint way = count > 0 ? (MPI_Aint)(count - 1) * extent : 0;
    *low += way < 0 ? way : 0;
    *bytes += way < 0 ? -way : way;
    return MPI_SUCCESS;
}

int coll_elements_for(const struct coll_call *call, MPI_Count count,
                      struct coll_elements *elements) {
    MPI_Aint low, bytes;
    COLL_TRY(coll_span(call, count, &low, &bytes));
    COLL_TRY(coll_allocate(bytes, &elements->memory));
    elements->data = elements->memory - low;
    return MPI_SUCCESS;
}

int coll_copy_elements(const struct coll_call *call, const struct coll_comm *cc, const void *from,
                       void *to, int count) {
    return coll_copy(from, count, call->recv_type, to, count, call->recv_type, cc);
}

/* Spaced elements one by one, as what they are: functions of the application may look at that. */
static int reduce_local(const struct coll_call *call, char *from, char *into, int count) {
    if (!call->spaced)
        return PMPI_Reduce_local(from, into, count, call->recv_type, call->op);
    for (int i = 0; i < count; ++i)
        COLL_TRY(PMPI_Reduce_local(coll_element(call, from, i), coll_element(call, into, i), 1,
                                   call->element_type, call->op));
    return MPI_SUCCESS;
}

/*
 * Combine `theirs` into `mine`. Theirs come first if they are of lower ranks than mine, which
 * matters to operations that do not commute; then `theirs` may be overwritten.
 */
int coll_fold(const struct coll_call *call, const struct coll_comm *cc, char *theirs, char *mine,
              int count, int theirs_first) {
    if (theirs_first || !call->ordered)
        return reduce_local(call, theirs, mine, count);
    COLL_TRY(reduce_local(call, mine, theirs, count));
    return coll_copy_elements(call, cc, theirs, mine, count);
}

static int is_for(const struct coll_call *call, enum coll_reduction reduction) {
    return coll_descriptors[call->collective].reduces == reduction;
}

/* Elements that a rank brings, and those of the result that it gets. */
static MPI_Count input_of(const struct coll_call *call, const struct coll_comm *cc) {
    MPI_Count count = 0;
    if (!coll_is_uneven(&call->recv_blocks))
        return call->recv_count * (is_for(call, COLL_A_PART_FOR_EACH) ? cc->size : 1);
    for (int rank = 0; rank < cc->size; ++rank)
        count += coll_count_of(&call->recv_blocks, rank);
    return count;
}

static MPI_Count result_of(const struct coll_call *call, const struct coll_comm *cc) {
    if (is_for(call, COLL_FOR_ROOT) && cc->rank != call->root)
        return 0;
    return coll_is_uneven(&call->recv_blocks) ? coll_count_of(&call->recv_blocks, cc->rank)
                                              : call->recv_count;
}

/* The same call on a copy of its elements, of the type that keeps them apart. */
static int run_spaced(const struct coll_routine *routine, const struct coll_call *call,
                      const struct coll_comm *cc, const struct coll_parameters *parameters,
                      MPI_Datatype type) {
    const int brought = (int)input_of(call, cc), got = (int)result_of(call, cc);
    const void *input = call->sendbuf == MPI_IN_PLACE ? call->recvbuf : call->sendbuf;
    struct coll_call spaced = *call;
    struct coll_elements elements;
    spaced.recv_type = type;
    spaced.spaced = 1;
    spaced.element_type = call->recv_type;
    COLL_TRY(coll_elements_for(&spaced, brought, &elements));
    COLL_TRY(coll_copy(input, brought, call->recv_type, elements.data, brought, type, cc));
    if (is_for(call, COLL_FOR_ROOT) && cc->rank != call->root) {
        spaced.sendbuf = elements.data;
    } else {
        spaced.sendbuf = MPI_IN_PLACE;
        spaced.recvbuf = elements.data;
    }
    COLL_TRY(coll_run_inside(routine, &spaced, cc, parameters));
    COLL_TRY(coll_copy(elements.data, got, type, call->recvbuf, got, call->recv_type, cc));
    free(elements.memory);
    return MPI_SUCCESS;
}

int coll_run_reduction(const struct coll_routine *routine, const struct coll_call *call,
                       const struct coll_comm *cc, const struct coll_parameters *parameters) {
    MPI_Datatype type;
    int differs;
    if (routine->constraints & COLL_OF_PARTS) /* its parts take the application's types */
        return routine->run(call, cc, parameters);
    COLL_TRY(coll_spaced_type(call->recv_type, &type, &differs));
    if (!differs)
        return coll_run_inside(routine, call, cc, parameters);
    const int error = run_spaced(routine, call, cc, parameters, type);
    COLL_TRY(PMPI_Type_free(&type));
    return error;
}
