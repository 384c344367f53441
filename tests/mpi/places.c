/*
 * Says what a communicator would be, with no process but this one. Each line of the input has the
 * number of ranks and their hosts, as numbers in the order of the topology file, -1 for unknown
 * ones. Each line of the output has numbers only: kind, group, hosts; then for COLL_KIND_HOSTS and
 * more order, place_of, first_place, depth_before but for place 0, and the host of each rank; for
 * COLL_KIND_CLUSTER also rank_of and position_of.
 */
#include "communicator.c"

#include <stdio.h>

const unsigned long long coll_build = 0;

static void print_numbers(const int *numbers, int count) {
    for (int i = 0; i < count; ++i)
        printf(" %d", numbers[i]);
}

static int host_of(const int *hosts, int size, int rank) {
    struct coll_comm cc = {.size = size, .rank = rank, .group = -1};
    const int error = locate(&cc, hosts);
    free(cc.memory);
    return error == MPI_SUCCESS ? cc.host : -1;
}

static int tell(const int *hosts, int size) {
    struct coll_comm cc = {.size = size, .rank = 0, .group = -1};
    COLL_TRY(locate(&cc, hosts));
    printf("%d %d %d", cc.kind, cc.group, cc.hosts);
    if (cc.kind >= COLL_KIND_HOSTS) {
        print_numbers(cc.order, size);
        print_numbers(cc.place_of, size);
        print_numbers(cc.first_place, cc.hosts + 1);
        print_numbers(cc.depth_before + 1, size - 1);
        for (int rank = 0; rank < size; ++rank)
            printf(" %d", host_of(hosts, size, rank));
    }
    if (cc.kind == COLL_KIND_CLUSTER) {
        print_numbers(cc.rank_of, size);
        print_numbers(cc.position_of, size);
    }
    printf("\n");
    free(cc.memory);
    return MPI_SUCCESS;
}

int main(void) {
    enum { RANKS_MOST = 256 };
    int size, hosts[RANKS_MOST];
    while (scanf("%d", &size) == 1 && size <= RANKS_MOST) {
        for (int rank = 0; rank < size; ++rank)
            if (scanf("%d", &hosts[rank]) != 1)
                return EXIT_FAILURE;
        if (tell(hosts, size) != MPI_SUCCESS)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
