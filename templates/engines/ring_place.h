/* A place on a ring of ranks, and the ranks next to it. */
#ifndef RING_PLACE_H
#define RING_PLACE_H

struct ring_place {
    int size, place, next, previous;
};

#endif
