/* The hosts of a communicator at the positions of a schedule between hosts. */
#include "leader_hosts.h"

/* The host of a communicator that has this place among all hosts of the cluster, or -1. */
static int host_with(const struct coll_comm *cc, int place) {
    int first = 0, end = cc->hosts;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if (cc->host_place[middle] < place)
            first = middle + 1;
        else
            end = middle;
    }
    return first < cc->hosts && cc->host_place[first] == place ? first : -1;
}

int coll_leader_hosts(const struct coll_comm *cc, int group, const int *leader_of, int positions,
                      int *host_at, int *rank_of) {
    int own = -1;
    for (int position = 0; position < positions; ++position) {
        const int host = coll_cluster_host_of(group, leader_of[position]);
        host_at[position] = host_with(cc, coll_cluster_place_of(host));
        if (host_at[position] == -1)
            return -1;
        rank_of[position] = cc->order[cc->first_place[host_at[position]]];
        own = host_at[position] == cc->host ? position : own;
    }
    return cc->hosts == positions ? own : -1;
}
