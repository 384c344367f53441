/* The view of reductions whose result is scattered: every rank has elements for all ranks. */
#ifndef SCATTERED_VIEW_H
#define SCATTERED_VIEW_H

#include "coll.h"

/*
 * Copy the elements of this rank for all ranks, so that they can be overwritten. The scratch holds
 * where those for each rank start (view->starts), and then the elements (view->recv).
 */
int coll_scattered_view_prepare(struct coll_call *view, const struct coll_comm *cc, char **scratch);

/* Bring the elements for this rank to its receive buffer. */
int coll_scattered_view_finish(const struct coll_call *view, const struct coll_comm *cc);

/* What coll_scattered_view_prepare allocates, where a rank holds so many bytes for all ranks. */
double coll_scattered_view_copies(double bytes_of_all, int size);

#endif
