/* Collectives on an intercommunicator mean something else, and go to the MPI library. */
#include "program.h"

#include "libcoll.h"

enum { COUNT = 40 };

static MPI_Comm between, local;
static int side, rank, here, there;

static void broadcast(void) {
    int data[COUNT];
    for (int i = 0; i < COUNT; ++i)
        data[i] = side == 0 && rank == 0 ? i : -1;
    const int root = side == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    EXPECT(MPI_Bcast(data, COUNT, MPI_INT, root, between) == MPI_SUCCESS);
    for (int i = 0; i < COUNT; ++i)
        EXPECT(data[i] == (side == 1 || rank == 0 ? i : -1));
}

static void exchange(int all) {
    int *out = malloc((size_t)there * COUNT * sizeof *out);
    int *in = malloc((size_t)there * COUNT * sizeof *in);
    for (int i = 0; i < there * COUNT; ++i)
        out[i] = 10000 * side + 100 * rank + i / COUNT;
    if (all)
        MPI_Alltoall(out, COUNT, MPI_INT, in, COUNT, MPI_INT, between);
    else
        MPI_Allgather(out, COUNT, MPI_INT, in, COUNT, MPI_INT, between);
    for (int i = 0; i < there * COUNT; ++i) {
        const int base = 10000 * (1 - side) + 100 * (i / COUNT);
        EXPECT(in[i] == base + (all ? rank : 0));
    }
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    int world_rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    side = world_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 5, &between);
    MPI_Comm_rank(between, &rank);
    MPI_Comm_size(between, &here);
    MPI_Comm_remote_size(between, &there);
    broadcast();
    exchange(0);
    exchange(1);
    EXPECT(strcmp(libcoll_choice("alltoall", 64, between), "native") == 0);
    MPI_Comm_free(&between);
    MPI_Comm_free(&local);
    return finish();
}
