/*
 * Classes of calls, by the largest block in means of all blocks. What serves is what was measured
 * with the nearest class. The rules for all calls were measured with even blocks: their class is 1.
 */
#include "dispatch.h"

/* How many times the larger of two numbers is the other one. */
static double ratio_of(double one, double other) {
    return one > other ? one / other : other / one;
}

/*
 * Where a class is as near as the rules for all calls, these serve if they tell sizes apart: more
 * sizes were measured for them.
 */
static int is_nearer(double apart, double nearest, int is_first, int unsized) {
    return apart < nearest || (apart <= nearest && is_first && unsized);
}

const struct coll_pattern_entry *coll_find_class(enum coll_collective collective, int group,
                                                 double largest_over_mean, MPI_Aint bytes) {
    const struct coll_pattern_entry *found = NULL;
    double nearest = ratio_of(largest_over_mean, 1);
    for (int i = 0; i < coll_pattern_count; ++i) {
        const struct coll_pattern_entry *one = &coll_pattern_entries[i];
        if (one->collective != collective || one->group != group || one->bytes != NULL ||
            bytes < one->first || bytes > one->last)
            continue;
        const double apart = ratio_of(largest_over_mean, one->largest_over_mean);
        if (is_nearer(apart, nearest, found == NULL, coll_descriptors[collective].unsized)) {
            nearest = apart;
            found = one;
        }
    }
    return found;
}

double coll_largest_over_mean(double largest, double all, double blocks) {
    return all > 0 ? largest * blocks / all : 1;
}

/* Of an allgatherv all ranks know all counts. */
int coll_find_known_class(const struct coll_call *call, const struct coll_comm *cc,
                          const struct coll_pattern_entry **entry) {
    MPI_Count size, largest = 0;
    COLL_TRY(PMPI_Type_size_x(call->recv_type, &size));
    for (int rank = 0; rank < cc->size; ++rank) {
        const MPI_Count count = coll_recv_count(call, rank);
        largest = count > largest ? count : largest;
    }
    const double over_mean =
        coll_largest_over_mean((double)size * (double)largest, (double)call->bytes, cc->size);
    *entry = coll_find_class(call->collective, cc->group, over_mean, call->bytes);
    return MPI_SUCCESS;
}
