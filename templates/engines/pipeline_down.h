/* A message on its way down a tree, in segments. */
#ifndef PIPELINE_DOWN_H
#define PIPELINE_DOWN_H

#include "coll.h"
#include "tree.h"

/*
 * Pass the message of a broadcast on from the parent to the children, in segments of segment_size
 * bytes, while later segments arrive.
 */
int coll_pipeline_down(const struct coll_call *call, const struct coll_comm *cc,
                       const struct tree_node *node, int segment_size);

#endif
