/* Trees of all ranks: the ranks above and below a rank. */
#include "tree.h"

static void add_child(struct tree_node *node, int rank) {
    node->child[node->children++] = rank;
}

/* Place i, counted from the root, has the children arity * i + 1 … arity * i + arity. */
struct tree_node coll_tree_by_levels(const struct coll_comm *cc, int root, int arity) {
    const int p = cc->size, place = (cc->rank - root + p) % p;
    struct tree_node node = {.parent = MPI_PROC_NULL};
    if (place != 0)
        node.parent = ((place - 1) / arity + root) % p;
    for (int i = 1; i <= arity && (long)arity * place + i < p; ++i)
        add_child(&node, (arity * place + i + root) % p);
    return node;
}

struct tree_node coll_tree_along(const struct coll_comm *cc, int root, const int *order,
                                 const int *place_of) {
    const int p = cc->size, place = place_of[cc->rank], next = order[(place + 1) % p];
    struct tree_node node = {.parent = MPI_PROC_NULL};
    if (cc->rank != root)
        node.parent = order[(place - 1 + p) % p];
    if (next != root)
        add_child(&node, next);
    return node;
}

struct tree_node coll_tree_chain_to_root(const struct coll_call *call, const struct coll_comm *cc) {
    if (!call->ordered)
        return coll_tree_by_levels(cc, call->root, 1);
    const int rank = cc->rank, root = call->root;
    struct tree_node node = {.parent = MPI_PROC_NULL};
    if (rank != root)
        node.parent = rank < root ? rank + 1 : rank - 1;
    if (rank <= root && rank > 0)
        add_child(&node, rank - 1);
    if (rank >= root && rank < cc->size - 1)
        add_child(&node, rank + 1);
    return node;
}

struct tree_node coll_tree_binary_to_root(const struct coll_call *call,
                                          const struct coll_comm *cc) {
    if (!call->ordered)
        return coll_tree_by_levels(cc, call->root, 2);
    struct tree_node node = {.parent = MPI_PROC_NULL};
    int first = 0, end = cc->size, top = call->root;
    while (top != cc->rank) {
        node.parent = top;
        first = cc->rank < top ? first : top + 1;
        end = cc->rank < top ? top : end;
        top = first + (end - first) / 2;
    }
    if (first < top)
        add_child(&node, first + (top - first) / 2);
    if (top + 1 < end)
        add_child(&node, top + 1 + (end - top - 1) / 2);
    return node;
}
