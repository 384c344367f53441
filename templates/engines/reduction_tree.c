/* A k-nomial tree of ranks, up which operands go, and down which the result goes. */
#include <stdlib.h>

#include "coll.h"
#include "reduction_tree.h"

struct reduction_tree coll_reduction_tree_of_all(const struct coll_comm *cc, int top) {
    const int p = cc->size;
    return (struct reduction_tree){.members = p, .number = (cc->rank - top + p) % p, .top = top};
}

struct reduction_tree coll_reduction_tree_of_host(const struct coll_comm *cc) {
    const int first = cc->first_place[cc->host];
    return (struct reduction_tree){.members = cc->first_place[cc->host + 1] - first,
                                   .number = cc->place_of[cc->rank] - first,
                                   .ranks = cc->order + first};
}

static int rank_of(const struct reduction_tree *tree, int number) {
    return tree->ranks != NULL ? tree->ranks[number] : (tree->top + number) % tree->members;
}

/*
 * A number with the lowest digit that is not 0 at some weight has below it the numbers that differ
 * in one lower digit. Parts of the tree are runs of numbers, and come one after the other.
 */
static int combine(const struct coll_call *call, const struct coll_comm *cc,
                   const struct reduction_tree *tree, int radix, char *mine, int count,
                   char *theirs) {
    const int p = tree->members, number = tree->number;
    long weight = 1;
    for (; weight < p && number / weight % radix == 0; weight *= radix) {
        for (int digit = 1; digit < radix && number + digit * weight < p; ++digit) {
            COLL_TRY(PMPI_Recv(theirs, count, call->recv_type,
                               rank_of(tree, number + digit * (int)weight), COLL_TAG_DATA, cc->comm,
                               MPI_STATUS_IGNORE));
            COLL_TRY(coll_fold(call, cc, theirs, mine, count, 0));
        }
    }
    if (number == 0)
        return MPI_SUCCESS;
    const int parent = number - (int)(number / weight % radix * weight);
    return PMPI_Send(mine, count, call->recv_type, rank_of(tree, parent), COLL_TAG_DATA, cc->comm);
}

int coll_reduction_tree_combine(const struct coll_call *call, const struct coll_comm *cc,
                                const struct reduction_tree *tree, int radix, char *mine,
                                int count) {
    struct coll_elements theirs;
    COLL_TRY(coll_elements_for(call, count, &theirs));
    const int error = combine(call, cc, tree, radix, mine, count, theirs.data);
    free(theirs.memory);
    return error;
}

int coll_reduction_tree_broadcast(const struct coll_call *call, const struct coll_comm *cc,
                                  const struct reduction_tree *tree) {
    const int p = tree->members, number = tree->number;
    int bit = 1;
    while (bit < p && (number & bit) == 0)
        bit <<= 1;
    if (number != 0)
        COLL_TRY(PMPI_Recv(call->recv, call->recv_count, call->recv_type,
                           rank_of(tree, number - bit), COLL_TAG_DATA, cc->comm,
                           MPI_STATUS_IGNORE));
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (number + bit < p)
            COLL_TRY(PMPI_Send(call->recv, call->recv_count, call->recv_type,
                               rank_of(tree, number + bit), COLL_TAG_DATA, cc->comm));
    return MPI_SUCCESS;
}
