/* The binomial trees of gather and scatter: the blocks of a subtree go in one message. */
#include <stdlib.h>

#include "block_tree.h"

struct block_tree coll_block_tree_at(int place, int root, const int *order, int size) {
    const int number = (place - root + size) % size, rest = size - number;
    int bit = 1;
    while (bit < size && (number & bit) == 0)
        bit <<= 1;
    return (struct block_tree){
        .order = order,
        .root = root,
        .size = size,
        .number = number,
        .count = bit < rest ? bit : rest,
        .bit = bit,
    };
}

int coll_block_tree_rank(const struct block_tree *tree, int number) {
    const int place = (tree->root + number) % tree->size;
    return tree->order == NULL ? place : tree->order[place];
}

int coll_block_tree_below(const struct block_tree *tree, int bit) {
    const int rest = tree->count - bit;
    return rest < 0 ? 0 : rest < bit ? rest : bit;
}

int coll_block_tree_run(const struct block_tree *tree, int number, int count, MPI_Datatype block,
                        MPI_Datatype *run) {
    int *ranks = malloc((size_t)count * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < count; ++i)
        ranks[i] = coll_block_tree_rank(tree, number + i);
    const int error = PMPI_Type_create_indexed_block(count, 1, ranks, block, run);
    free(ranks);
    return error == MPI_SUCCESS ? PMPI_Type_commit(run) : error;
}
