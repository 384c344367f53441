/* Blocks for two ranks of as many elements as an int counts: the padding is filled, one element. */
#include <limits.h>
#include <stdio.h>

#include "padded.h"

static char here;
static MPI_Aint filled;
static int copies;

int coll_extent(MPI_Count count, MPI_Datatype type, MPI_Aint *bytes) {
    (void)type;
    *bytes = (MPI_Aint)count;
    return MPI_SUCCESS;
}

int coll_elements_for(const struct coll_call *call, MPI_Count count,
                      struct coll_elements *elements) {
    (void)call;
    (void)count;
    *elements = (struct coll_elements){&here, &here};
    return MPI_SUCCESS;
}

int coll_copy_elements(const struct coll_call *call, const struct coll_comm *cc, const void *from,
                       void *to, int count) {
    (void)call;
    (void)cc;
    (void)from;
    ++copies;
    if (count == 1)
        filled = (MPI_Aint)to - (MPI_Aint)&here;
    return MPI_SUCCESS;
}

int coll_run_part(const struct coll_parameters *parameters, int which, struct coll_call part,
                  const struct coll_comm *cc) {
    (void)parameters;
    (void)which;
    (void)part;
    (void)cc;
    return MPI_SUCCESS;
}

int main(void) {
    const struct coll_call call = {.recvbuf = &here, .recv_count = INT_MAX};
    const struct coll_comm cc = {.size = 2};
    struct padded padded;
    coll_padded_make(&call, &cc, &padded);
    printf("%d elements a block, %d copies, the last to %lld\n", padded.count, copies,
           (long long)filled);
    return 0;
}
