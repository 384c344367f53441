/* Operands on their way up a tree, in segments. */
#ifndef PIPELINE_UP_H
#define PIPELINE_UP_H

#include "coll.h"
#include "tree.h"

/*
 * Combine what comes from the children of a reduction, and pass it on to the parent, in segments of
 * segment_size bytes, or of one element if that is more, while later segments arrive. If the ranks
 * below each child and those below this rank are runs, the operands stay in their order.
 */
int coll_pipeline_up(const struct coll_call *call, const struct coll_comm *cc,
                     const struct tree_node *node, int segment_size);

#endif
