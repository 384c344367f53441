/* The hosts of a communicator at the positions of a schedule between hosts. */
#ifndef LEADER_HOSTS_H
#define LEADER_HOSTS_H

#include "coll.h"

/*
 * Find which host of the communicator each position is. A position is given by a rank of its host
 * in a group of cluster.c. Returns 0 if the communicator is not on exactly these hosts.
 */
int coll_leader_hosts(const struct coll_comm *cc, int group, const int *leader_of, int positions,
                      int *host_at);

#endif
