/*
 * Says what the combining tree does, with no process but this one: whom each rank sends tokens to
 * and receives them from. Input: lines of an arity, the number of ranks and their hosts. Output:
 * two lines for each rank, with its steps in order: a rank it sends to, or -1 - one it receives
 * from. The second is of a second barrier, when the tables that the tree is made from are gone.
 */
#include "communicator.c"

#include <stdio.h>

const unsigned long long coll_build = 0;

static int tell_tokens(int to, int from) {
    if (to != MPI_PROC_NULL)
        printf(" %d", to);
    if (from != MPI_PROC_NULL)
        printf(" %d", -1 - from);
    return MPI_SUCCESS;
}

#define coll_exchange_tokens(cc, to, from) tell_tokens(to, from)
#include "barrier_combining_tree.c"

static int tell(const int *hosts, int size, int arity, int rank) {
    const struct coll_parameters parameters = {.arity = arity};
    struct coll_combining *none = NULL;
    struct coll_comm cc = {.size = size, .rank = rank, .group = -1, .combining = &none};
    COLL_TRY(locate(&cc, hosts));
    for (int barrier = 0; barrier < 2; ++barrier) {
        COLL_TRY(barrier_combining_tree(NULL, &cc, &parameters));
        printf("\n");
        cc.order = cc.place_of = cc.depth_before = NULL;
    }
    free(cc.memory);
    for (struct coll_combining *next; none != NULL; none = next) {
        next = none->next;
        free(none);
    }
    return MPI_SUCCESS;
}

int main(void) {
    enum { RANKS_MOST = 256 };
    int arity, size, hosts[RANKS_MOST];
    while (scanf("%d %d", &arity, &size) == 2 && size <= RANKS_MOST) {
        for (int rank = 0; rank < size; ++rank)
            if (scanf("%d", &hosts[rank]) != 1)
                return EXIT_FAILURE;
        for (int rank = 0; rank < size; ++rank)
            if (tell(hosts, size, arity, rank) != MPI_SUCCESS)
                return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
