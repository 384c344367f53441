/*
 * Short releases to all ranks of a communicator at once, by IP multicast, where LIBCOLL_MULTICAST
 * names a group. Datagrams get lost, so whoever tells something in this way sends it in messages,
 * too.
 */
#ifndef MULTICAST_H
#define MULTICAST_H

#include "coll.h"

/* Bytes of data in a datagram: no network that carries IP need cut it into pieces. */
enum { MULTICAST_MOST = 1200 };

/* What a communicator has for it: a socket, and a communicator for the messages that repeat. */
struct multicast;

/*
 * The communicator's, or NULL on all ranks if the variable is not set, or if a datagram does not
 * reach all of them. The first call for a communicator finds this out, and is collective.
 */
int coll_multicast_of(const struct coll_comm *cc, struct multicast **multicast);

/*
 * A release begins, on all ranks. What the one before left to come is received now, so messages of
 * two releases never mix; those of this one are to be sent on the communicator that it returns.
 */
int coll_multicast_begin(struct multicast *multicast, MPI_Comm *comm);

/* Tell all ranks a number and data of at most MULTICAST_MOST bytes. If that fails, it is lost. */
void coll_multicast_tell(struct multicast *multicast, int number, const void *data, int count,
                         MPI_Datatype type);

/* Whether this release has been told. It returns at once. `take` then gets the data. */
int coll_multicast_heard(struct multicast *multicast, int *number);
int coll_multicast_take(struct multicast *multicast, void *data, int count, MPI_Datatype type);

/*
 * This rank has heard, and leaves before the message that repeats it has come. That one has a tag
 * from `low` up to below `high`; others of the same rank may come before it. The request and the
 * memory that it receives into go to the communicator until then.
 */
void coll_multicast_leave(struct multicast *multicast, MPI_Request *request, char **memory,
                          int from, int low, int high);

#endif
