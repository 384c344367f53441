/* The schedule of a pattern, made at run time: in which order the messages of an alltoallv go. */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdint.h>

/* The cluster as a tree: every node but the first has a link to a node before it or to any other.
 */
struct pattern_tree {
    int nodes;
    const int *parent;      /* -1 for the root */
    const long long *rates; /* bit/s of the link to the parent; 0 for the root */
};

/* How much each rank sends to each other one. */
struct pattern {
    struct pattern_tree tree;
    int ranks;
    const int *host;      /* [rank]: the node that it is on */
    const int64_t *bytes; /* [sender * ranks + receiver]; what a rank has for itself is not sent */
};

/* Part `part` of `parts` of the message between two ranks. */
struct pattern_piece {
    int from, to, part, parts, phase;
};

/* Piece `then` starts when piece `first` has arrived. */
struct pattern_wait {
    int first, then;
};

/* The pieces in their order; numbers of pieces are places in it. */
struct pattern_plan {
    int pieces, waits;
    struct pattern_piece *piece;
    struct pattern_wait *wait;
    double seconds;     /* that the data takes in this order */
    int64_t operations; /* of making it: links looked at, words of sets combined */
};

/* Pieces of a schedule: at most so many, or as many as there are messages if these are more. */
enum { PATTERN_PIECES = 4096 };

/*
 * Make the schedule: messages in pieces of about `segment` bytes, in the order in which first fit
 * by the most remaining work starts them; with the waits that keep the order on every link, or
 * without any. Returns 0 if there is no memory; else the plan is to be freed.
 */
int coll_pattern_schedule(const struct pattern *pattern, int64_t segment, int with_waits,
                          struct pattern_plan *plan);
void coll_pattern_free(struct pattern_plan *plan);

/* The bytes of a piece begin at byte `start` of its message of `bytes` and end before the next. */
static inline int64_t coll_pattern_start(int64_t bytes, int part, int parts) {
    return bytes / parts * part + bytes % parts * part / parts;
}

#endif
