/* A reduce-scatter on a circulant graph (Träff 2024). */
#include "circulant_halving.h"
#include "vector_runs.h"

/*
 * A rank holds the blocks of the next `held` ranks, itself the first. It sends the farther half to
 * the rank at that distance: these blocks are for that rank and for those after it. What comes from
 * the rank as far before is combined with the nearer half.
 */
int coll_circulant_halving(const struct coll_call *call, const struct coll_comm *cc, char *room) {
    const int p = cc->size;
    for (int held = p; held > 1; held -= held / 2) {
        const int moved = held / 2, distance = held - moved;
        const int to = (cc->rank + distance) % p, from = (cc->rank - distance + p) % p;
        const struct runs given = coll_runs_of_blocks(call, p, to, moved);
        const struct runs taken = coll_runs_of_blocks(call, p, cc->rank, moved);
        COLL_TRY(coll_runs_swap(call, cc, to, &given, from, &taken, room));
        COLL_TRY(coll_runs_fold(call, cc, &taken, room, 1));
    }
    return MPI_SUCCESS;
}
