/* The line of ranks along which gather and scatter pass blocks in segments. */
#ifndef BLOCK_LINE_H
#define BLOCK_LINE_H

#include "coll.h"

/* Segments that a rank has room for, and how many of them it may be sending. */
enum { BLOCK_LINE_ROOM = 8, BLOCK_LINE_LEAVING = 4 };

/*
 * The ranks in depth-first order from the root around the circle, which uses every edge at most
 * once (Lemma 9), as this rank sees it. Every message is a segment of a block.
 */
struct block_line {
    int nearer, farther; /* the neighbours: towards the root, away from it */
    int segment_size;
    MPI_Aint own;       /* segments of a block */
    MPI_Aint passed_on; /* segments of the blocks of all ranks farther from the root */
    char *room;         /* for segments that are passed on; NULL on the root */
    MPI_Request requests[BLOCK_LINE_ROOM + BLOCK_LINE_LEAVING]; /* of receives, then of sends */
};

/* Makes the line, with its memory. */
int coll_block_line_begin(const struct coll_call *call, const struct coll_comm *cc,
                          int segment_size, struct block_line *line);

/* Waits for all messages, or gives them up after an error, and frees the memory. */
int coll_block_line_end(struct block_line *line, int error);

/* The bytes of a message: the last segment of a block may be shorter than the others. */
int coll_block_line_bytes(const struct coll_call *call, const struct block_line *line,
                          MPI_Aint message);

/* The request of the receive, or of the send, of a message; later messages use it again. */
static inline MPI_Request *block_line_receive_of(struct block_line *line, MPI_Aint message) {
    return &line->requests[message % BLOCK_LINE_ROOM];
}

static inline MPI_Request *block_line_send_of(struct block_line *line, MPI_Aint message) {
    return &line->requests[BLOCK_LINE_ROOM + message % BLOCK_LINE_LEAVING];
}

/* Where a message is kept until it has left. */
static inline char *block_line_room_of(const struct block_line *line, MPI_Aint message) {
    return line->room + message % BLOCK_LINE_ROOM * line->segment_size;
}

#endif
