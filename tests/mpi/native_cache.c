/*
 * Calls that were native are known to be so again: the same calls, and no others. Run with the
 * collectives below forced to be native.
 */
#include <stdint.h>

#include "dispatch.h"
#include "program.h"

static struct coll_call broadcast(int count, MPI_Datatype type, int root, MPI_Comm comm) {
    return (struct coll_call){.collective = COLL_BCAST,
                              .comm = comm,
                              .recv_count = count,
                              .recv_type = type,
                              .root = root};
}

static int again(struct coll_call call) {
    return coll_cached_native_call(&call);
}

static void broadcasts(MPI_Comm comm) {
    int values[4] = {0};
    MPI_Comm other;
    MPI_Comm_dup(comm, &other);
    MPI_Bcast(values, 2, MPI_INT, 0, comm);
    EXPECT(again(broadcast(2, MPI_INT, 0, comm)));
    EXPECT(!again(broadcast(3, MPI_INT, 0, comm)));
    EXPECT(!again(broadcast(2, MPI_DOUBLE, 0, comm)));
    EXPECT(!again(broadcast(2, MPI_INT, 1, comm)));
    EXPECT(!again(broadcast(2, MPI_INT, 0, other)));
    MPI_Bcast(values, 2, MPI_INT, 0, other);
    EXPECT(again(broadcast(2, MPI_INT, 0, other)));
    const MPI_Comm freed = other;
    MPI_Comm_free(&other);
    EXPECT(!again(broadcast(2, MPI_INT, 0, freed)));
}

/* Handles of the application's own types and operations may be others' afterwards. */
static void own_types(MPI_Comm comm) {
    int values[4] = {0};
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Bcast(values, 2, pair, 0, comm);
    EXPECT(!again(broadcast(2, pair, 0, comm)));
    MPI_Type_free(&pair);
}

static void add(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; ++i)
        ((int *)inout)[i] += ((const int *)in)[i];
}

static struct coll_call reduction(const void *from, MPI_Op op, MPI_Comm comm) {
    return (struct coll_call){.collective = COLL_ALLREDUCE,
                              .comm = comm,
                              .sendbuf = from,
                              .recv_count = 1,
                              .recv_type = MPI_INT,
                              .op = op};
}

static void reductions(MPI_Comm comm) {
    int one = 1, sum = 0;
    MPI_Op own;
    MPI_Op_create(add, 0, &own);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(again(reduction(&one, MPI_SUM, comm)));
    EXPECT(!again(reduction(&one, MPI_MAX, comm)));
    EXPECT(!again(reduction(MPI_IN_PLACE, MPI_SUM, comm)));
    MPI_Allreduce(&one, &sum, 1, MPI_INT, own, comm);
    EXPECT(!again(reduction(&one, own, comm)));
    MPI_Op_free(&own);
}

/* It is the sum of the counts that tells; counts that mean nothing are not looked at. */
static void blocks(MPI_Comm comm) {
    int size, all[16] = {0}, counts[16] = {0}, swapped[16] = {0}, more[16] = {0};
    MPI_Comm_size(comm, &size);
    for (int rank = 0; rank < size; ++rank)
        counts[rank] = swapped[rank] = more[rank] = 1;
    counts[0] = swapped[1] = more[0] = more[1] = 2;
    struct coll_call call = {.collective = COLL_REDUCE_SCATTER,
                             .comm = comm,
                             .sendbuf = MPI_IN_PLACE,
                             .recvbuf = all,
                             .recv_type = MPI_INT,
                             .op = MPI_SUM};
    MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, comm);
    call.recv_blocks.counts = swapped;
    EXPECT(again(call));
    call.recv_blocks.counts = more;
    EXPECT(!again(call));
    call.recv_blocks.counts = counts;
    call.send_blocks.counts = (const int *)(uintptr_t)1;
    EXPECT(again(call));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    broadcasts(MPI_COMM_WORLD);
    own_types(MPI_COMM_WORLD);
    reductions(MPI_COMM_WORLD);
    blocks(MPI_COMM_WORLD);
    return finish();
}
