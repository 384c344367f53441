/* The ranks of a communicator that usually come early, and those that come late. */
#include <stdlib.h>

#include "early_ranks.h"

static int place_of(const struct coll_comm *cc, int rank) {
    return cc->order != NULL ? cc->place_of[rank] : rank;
}

/* Put all ranks in the order in which they usually arrive; return how many of the last are late. */
static int sort(const struct learned_order *arrivals, int *ranks, int p, int most) {
    if (arrivals == NULL)
        return 0;
    coll_learned_sort(arrivals, ranks, p);
    const int late = coll_learned_late(arrivals, ranks, p);
    return late < most ? late : most;
}

/* Split them; `sorted` and `is_late` have room for all ranks. */
static void split(const struct coll_comm *cc, const struct learned_order *arrivals, int root,
                  int most, struct early_ranks *found, int *sorted, char *is_late) {
    const int p = cc->size, first = root == MPI_PROC_NULL ? 0 : place_of(cc, root);
    for (int i = 0; i < p; ++i) {
        sorted[i] = coll_rank_at(cc, (first + i) % p);
        is_late[sorted[i]] = 0;
    }
    const int late = sort(arrivals, sorted, p, most);
    for (int i = p - late; i < p; ++i)
        is_late[sorted[i]] = sorted[i] != root;
    for (int i = 0; i < p; ++i) {
        const int rank = coll_rank_at(cc, (first + i) % p);
        if (!is_late[rank])
            found->ranks[found->early++] = rank;
    }
    for (int i = p - late; i < p; ++i) {
        if (is_late[sorted[i]])
            found->ranks[found->early + found->late++] = sorted[i];
    }
    found->root_is_late = found->late < late;
    while (found->ranks[found->number] != cc->rank)
        ++found->number;
}

int coll_early_ranks_find(const struct coll_comm *cc, const struct learned_order *arrivals,
                          int root, int most, struct early_ranks *found) {
    const size_t p = (size_t)cc->size;
    int *sorted = malloc(p * sizeof *sorted);
    char *is_late = malloc(p * sizeof *is_late);
    *found = (struct early_ranks){.ranks = malloc(p * sizeof *found->ranks)};
    const int has_memory = sorted != NULL && is_late != NULL && found->ranks != NULL;
    if (has_memory)
        split(cc, arrivals, root, most, found, sorted, is_late);
    free(sorted);
    free(is_late);
    return has_memory ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}
