/* Recursive halving and doubling if p is no power of two: some ranks are guests of others. */
#include <stdlib.h>

#include "coll.h"
#include "pairs.h"

int coll_pairs_rank_of(const struct pairs *pairs, int number) {
    if (number >= pairs->pairs)
        return number + pairs->pairs;
    return 2 * number == pairs->keep ? 2 * number : 2 * number + 1;
}

int coll_pairs_first_rank(const struct pairs *pairs, int number) {
    return number < pairs->pairs ? 2 * number : number + pairs->pairs;
}

static struct pairs make_pairs(const struct coll_comm *cc, int keep) {
    struct pairs pairs = {.q = 1, .keep = keep};
    while (2 * pairs.q <= cc->size)
        pairs.q *= 2;
    pairs.pairs = cc->size - pairs.q;
    pairs.number = cc->rank < 2 * pairs.pairs ? cc->rank / 2 : cc->rank - pairs.pairs;
    if (coll_pairs_rank_of(&pairs, pairs.number) != cc->rank)
        pairs.number = -1;
    return pairs;
}

/* Guests give `count` elements to their partners, which take them into `room` and combine them. */
static int take_operands(const struct coll_call *call, const struct coll_comm *cc,
                         const struct pairs *pairs, char *room, int count) {
    const int partner = cc->rank ^ 1;
    if (cc->rank >= 2 * pairs->pairs)
        return MPI_SUCCESS;
    if (pairs->number < 0)
        return PMPI_Send(call->recv, count, call->recv_type, partner, COLL_TAG_DATA, cc->comm);
    COLL_TRY(PMPI_Recv(room, count, call->recv_type, partner, COLL_TAG_DATA, cc->comm,
                       MPI_STATUS_IGNORE));
    return coll_fold(call, cc, room, call->recv, count, partner < cc->rank);
}

/* Guests get `count` elements of the result, from the same place at their partners. */
static int give_result(const struct coll_call *call, const struct coll_comm *cc,
                       const struct pairs *pairs, char *result, int count) {
    const int partner = cc->rank ^ 1;
    if (cc->rank >= 2 * pairs->pairs || count == 0)
        return MPI_SUCCESS;
    if (pairs->number >= 0)
        return PMPI_Send(result, count, call->recv_type, partner, COLL_TAG_DATA, cc->comm);
    return PMPI_Recv(result, count, call->recv_type, partner, COLL_TAG_DATA, cc->comm,
                     MPI_STATUS_IGNORE);
}

/* Combine what all ranks bring, `count` elements each. */
static int combine(const struct coll_call *call, const struct coll_comm *cc,
                   const struct pairs *pairs, int count, pairs_function *among) {
    struct coll_elements room;
    COLL_TRY(coll_elements_for(call, pairs->number < 0 ? 0 : count, &room));
    int error = take_operands(call, cc, pairs, room.data, count);
    if (error == MPI_SUCCESS && pairs->number >= 0)
        error = among(call, cc, pairs, room.data);
    free(room.memory);
    return error;
}

int coll_pairs_reduce(const struct coll_call *call, const struct coll_comm *cc,
                      pairs_function *among) {
    const struct pairs pairs = make_pairs(cc, call->root);
    return combine(call, cc, &pairs, call->recv_count, among);
}

int coll_pairs_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                         pairs_function *among) {
    const struct pairs pairs = make_pairs(cc, -1);
    COLL_TRY(combine(call, cc, &pairs, call->recv_count, among));
    return give_result(call, cc, &pairs, call->recv, call->recv_count);
}

int coll_pairs_reduce_scatter(const struct coll_call *call, const struct coll_comm *cc,
                              pairs_function *among) {
    const struct pairs pairs = make_pairs(cc, -1);
    const int guest = pairs.number < 0 ? cc->rank : cc->rank ^ 1;
    COLL_TRY(combine(call, cc, &pairs, (int)call->starts[cc->size], among));
    if (cc->rank >= 2 * pairs.pairs)
        return MPI_SUCCESS;
    const int count = (int)(call->starts[guest + 1] - call->starts[guest]);
    return give_result(call, cc, &pairs, coll_element(call, call->recv, call->starts[guest]),
                       count);
}
