/* Elements as blocks for all ranks, one after the other and as even as can be. */
#include <stdlib.h>

#include "coll.h"
#include "divided.h"

int coll_divided_make(int elements, const struct coll_comm *cc, int **memory,
                      struct coll_blocks *blocks) {
    int *counts = malloc(2 * (size_t)cc->size * sizeof *counts);
    if (counts == NULL)
        return MPI_ERR_NO_MEM;
    int *displacements = counts + cc->size;
    for (int rank = 0; rank < cc->size; ++rank) {
        const long long start = (long long)elements * rank, end = start + elements;
        displacements[rank] = (int)(start / cc->size);
        counts[rank] = (int)(end / cc->size) - displacements[rank];
    }
    *memory = counts;
    *blocks = (struct coll_blocks){.counts = counts, .displacements = displacements};
    return MPI_SUCCESS;
}
