/* The hosts of a communicator at the positions of a schedule between hosts. */
#ifndef LEADER_HOSTS_H
#define LEADER_HOSTS_H

#include "coll.h"

/*
 * Find which host of the communicator each position is, and the rank that leads it: the first one
 * on it. A position is given by a rank of its host in a group of cluster.c. Returns the position of
 * this rank's host, or -1 if the communicator is not on exactly these hosts.
 */
int coll_leader_hosts(const struct coll_comm *cc, int group, const int *leader_of, int positions,
                      int *host_at, int *rank_of);

#endif
