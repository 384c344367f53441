/* An alltoall whose messages are all under way at once. */
#ifndef POST_ALL_H
#define POST_ALL_H

#include "coll.h"

/* Post the receives, then the sends, and wait for all of them. Every rank begins with rank 0. */
int coll_post_all_by_rank(const struct coll_call *call, const struct coll_comm *cc);

/* The same, but rank i begins with rank i + 1, so that no rank is everyone's first. */
int coll_post_all_spread(const struct coll_call *call, const struct coll_comm *cc);

#endif
