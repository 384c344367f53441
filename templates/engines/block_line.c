/* The line of ranks along which gather and scatter pass blocks in segments. */
#include <stdlib.h>

#include "block_line.h"

int coll_block_line_begin(const struct coll_call *call, const struct coll_comm *cc,
                          int segment_size, struct block_line *line) {
    const int p = cc->size, place = cc->place_of[cc->rank];
    const int distance = (place - cc->place_of[call->root] + p) % p;
    const int size = segment_size < call->bytes ? segment_size : (int)call->bytes;
    const MPI_Aint own = (call->bytes + size - 1) / size;
    *line = (struct block_line){
        .nearer = cc->order[(place - 1 + p) % p],
        .farther = cc->order[(place + 1) % p],
        .segment_size = size,
        .own = own,
        .passed_on = (p - 1 - distance) * own,
    };
    for (int i = 0; i < BLOCK_LINE_ROOM + BLOCK_LINE_LEAVING; ++i)
        line->requests[i] = MPI_REQUEST_NULL;
    if (cc->rank == call->root)
        return MPI_SUCCESS;
    line->room = malloc((size_t)BLOCK_LINE_ROOM * (size_t)size);
    return line->room == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int coll_block_line_end(struct block_line *line, int error) {
    error = coll_complete(line->requests, BLOCK_LINE_ROOM, BLOCK_LINE_LEAVING, error);
    if (error == MPI_SUCCESS) /* else sends that were given up may still read it */
        free(line->room);
    return error;
}

int coll_block_line_bytes(const struct coll_call *call, const struct block_line *line,
                          MPI_Aint message) {
    const MPI_Aint rest = call->bytes - message % line->own * line->segment_size;
    return rest < line->segment_size ? (int)rest : line->segment_size;
}
