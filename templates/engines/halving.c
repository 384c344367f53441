/* Recursive halving of a vector, in the order of the ranks (Rabenseifner 2004). */
#include "halving.h"

/* The parts from `low` to `high` of q nearly equal ones. */
static struct block parts(const struct coll_call *call, int q, int low, int high) {
    const MPI_Aint first = (MPI_Aint)call->recv_count * low / q;
    const MPI_Aint end = (MPI_Aint)call->recv_count * high / q;
    return (struct block){first, (int)(end - first)};
}

int coll_halving_swap(const struct coll_call *call, const struct coll_comm *cc, int partner,
                      char *out, struct block given, char *in, struct block taken) {
    return PMPI_Sendrecv(coll_element(call, out, given.first), given.count, call->recv_type,
                         partner, COLL_TAG_DATA, coll_element(call, in, taken.first), taken.count,
                         call->recv_type, partner, COLL_TAG_DATA, cc->comm, MPI_STATUS_IGNORE);
}

int coll_halving_reduce(const struct coll_call *call, const struct coll_comm *cc,
                        const struct pairs *pairs, char *room, struct halving *halving) {
    int low = 0, high = pairs->q;
    halving->steps = 0;
    for (int bit = 1; bit < pairs->q; bit <<= 1) {
        const int partner = coll_pairs_rank_of(pairs, pairs->number ^ bit);
        const int half = (low + high) / 2, lower = (pairs->number & bit) == 0;
        const struct block given =
            lower ? parts(call, pairs->q, half, high) : parts(call, pairs->q, low, half);
        low = lower ? low : half;
        high = lower ? half : high;
        const struct block kept = parts(call, pairs->q, low, high);
        COLL_TRY(coll_halving_swap(call, cc, partner, call->recv, given, room, kept));
        COLL_TRY(coll_fold(call, cc, coll_element(call, room, kept.first),
                           coll_element(call, call->recv, kept.first), kept.count, !lower));
        halving->given[halving->steps] = given;
        halving->kept[halving->steps++] = kept;
    }
    return MPI_SUCCESS;
}
