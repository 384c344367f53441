/* The operands of all ranks, combined in the order of the ranks. */
#include "rank_order.h"

int coll_rank_order_combine(const struct coll_call *call, const struct coll_comm *cc,
                            char *operands, MPI_Aint stride, int count, char *result) {
    char *last = operands + (cc->size - 1) * stride;
    for (int rank = cc->size - 2; rank >= 0; --rank)
        COLL_TRY(coll_fold(call, cc, operands + rank * stride, last, count, 1));
    return coll_copy_elements(call, cc, last, result, count);
}
