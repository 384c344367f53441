/* Prints the number of this process's host in the cluster, or -1. */
#include <stdio.h>

#include "coll.h"

int main(void) {
    printf("%d\n", coll_cluster_host());
    return 0;
}
