/* In which order the ranks of a communicator usually arrive, as they learn it from their calls. */
#include <stdlib.h>

#include "learned_order.h"

/* A level is so many times the one before it, from a microsecond on. */
static const double step = 1.4, least = 1e-6;

/* A rank is late if it waits so many levels less than the first one: about a third of its time. */
enum { GAP = 4 };

/* What the last call counts for; the rest is of those before. */
static const double weight = 0.5;

struct learned_order *coll_learned_begin(const struct coll_call *call, const struct coll_comm *cc) {
    static const char owners[COLL_COLLECTIVES];
    struct learned_order *arrivals;
    const size_t bytes = sizeof *arrivals + (size_t)cc->size * sizeof *arrivals->levels;
    void *kept = NULL;
    if (coll_comm_agreed_state(cc, &owners[call->collective], bytes, &kept) != MPI_SUCCESS ||
        kept == NULL)
        return NULL;
    arrivals = kept;
    arrivals->begin = PMPI_Wtime();
    arrivals->complete = 0;
    return arrivals;
}

void coll_learned_complete(struct learned_order *arrivals) {
    if (arrivals != NULL && arrivals->complete == 0)
        arrivals->complete = PMPI_Wtime();
}

void coll_learned_end(struct learned_order *arrivals) {
    if (arrivals == NULL)
        return;
    const double end = arrivals->complete > 0 ? arrivals->complete : PMPI_Wtime();
    const double waited = end - arrivals->begin;
    if (arrivals->calls == 0)
        arrivals->mean = waited;
    arrivals->mean += weight * (waited - arrivals->mean);
    arrivals->calls += arrivals->calls == 0;
}

void coll_learned_note(struct learned_order *arrivals, int rank, int level) {
    if (arrivals != NULL)
        arrivals->levels[rank] = (unsigned char)level;
}

int coll_learned_own(const struct learned_order *arrivals) {
    if (arrivals == NULL || arrivals->calls == 0)
        return 0;
    int level = 1;
    for (double longer = least * step; longer <= arrivals->mean && level < ARRIVAL_LEVELS - 1;
         longer *= step)
        ++level;
    return level;
}

/* Insertion: the order of the last call hardly changes. */
void coll_learned_sort(const struct learned_order *arrivals, int *ranks, int count) {
    for (int end = 1; arrivals != NULL && end < count; ++end) {
        const int rank = ranks[end];
        int at = end;
        for (; at > 0 && arrivals->levels[ranks[at - 1]] < arrivals->levels[rank]; --at)
            ranks[at] = ranks[at - 1];
        ranks[at] = rank;
    }
}

int coll_learned_late(const struct learned_order *arrivals, const int *ranks, int count) {
    int late = 0;
    for (; arrivals != NULL && late < count / 2; ++late) {
        const int level = arrivals->levels[ranks[count - 1 - late]];
        if (level == 0 || level + GAP > arrivals->levels[ranks[0]])
            break;
    }
    return late;
}
