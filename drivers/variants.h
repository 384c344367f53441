/* The routines of a library with parameters other than their defaults, for its check. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "coll.h"

/* Every value of every parameter, one parameter at a time. */
struct variant {
    int routine; /* its place in coll_routines[] */
    struct coll_parameters parameters;
};

extern const struct variant variants[]; /* variants.c */
extern const int variant_count;

#endif
