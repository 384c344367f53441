/* A tree of the ranks that usually come early, for data that goes to a root, or from it. */
#include <stdlib.h>

#include "early_tree.h"

/* From so many calls on, ranks tell once in as many. */
enum { TOLD_EVERY = 32 };

/*
 * Count this call, and return whether ranks tell at its end. The first call opens connections, so
 * its time tells nothing. Later counts begin again, at a power of two.
 */
static int is_due(int *calls) {
    const int before = (*calls)++;
    if (before == 2 * TOLD_EVERY)
        *calls = TOLD_EVERY + 1;
    return before > 0 && (before & (before - 1)) == 0;
}

int coll_early_tree_begin(const struct coll_call *call, const struct coll_comm *cc,
                          const void *owner, struct early_tree *tree) {
    void *calls = NULL;
    *tree = (struct early_tree){.arrivals = coll_learned_begin(call, cc)};
    if (tree->arrivals != NULL)
        COLL_TRY(coll_comm_agreed_state(cc, owner, sizeof(int), &calls));
    tree->is_due = calls != NULL && is_due(calls);
    return coll_early_ranks_find(cc, tree->arrivals, call->root, EARLY_TREE_LATE_MOST,
                                 &tree->ranks);
}

/*
 * All ranks leave the barrier at about the same time. So a rank that was in the call for long came
 * early.
 */
static int tell(const struct coll_comm *cc, struct learned_order *arrivals) {
    COLL_TRY(PMPI_Barrier(cc->comm));
    coll_learned_end(arrivals);
    coll_learned_note(arrivals, cc->rank, coll_learned_own(arrivals));
    return PMPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, arrivals->levels, 1,
                          MPI_UNSIGNED_CHAR, cc->comm);
}

int coll_early_tree_end(const struct coll_comm *cc, struct early_tree *tree, int error) {
    if (error == MPI_SUCCESS && tree->is_due)
        error = tell(cc, tree->arrivals);
    free(tree->ranks.ranks);
    return error;
}

/* The ranks from number `top` on fill a tree level by level; a root that is apart is above it. */
struct tree_node coll_early_tree_node(const struct early_tree *tree, int arity, int apart) {
    const struct early_ranks *ranks = &tree->ranks;
    const int top = apart ? 1 : 0, place = ranks->number - top;
    struct tree_node node = {.parent = MPI_PROC_NULL};
    if (place == 0 && apart)
        node.parent = ranks->ranks[0];
    if (place > 0)
        node.parent = ranks->ranks[top + (place - 1) / arity];
    const long first = place < 0 ? top : top + (long)arity * place + 1;
    const int most = place < 0 ? 1 : arity;
    for (int i = 0; i < most && first + i < ranks->early; ++i)
        node.child[node.children++] = ranks->ranks[first + i];
    return node;
}
