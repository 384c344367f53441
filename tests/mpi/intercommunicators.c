/*
 * Collectives on an intercommunicator mean something else, and go to the MPI library: all of them
 * give what they give through PMPI, and no routine is chosen.
 */
#include "program.h"

#include "libcoll.h"

enum { COUNT = 40, ROOM = (COUNT + 1) * PEERS_MOST };

static MPI_Comm between, local;
static int side, rank, here, there;

/* The first rank of one side is the root; the others of its side have nothing to do. */
static int root_of(int root_side) {
    if (side != root_side)
        return 0;
    return rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

/* Where results are scattered, the ranks of either side have as many elements together. */
static int count_of(const struct collective *collective) {
    return strncmp(collective->name, "reduce_scatter", 14) == 0 ? 5 * there : COUNT;
}

static void compare(const struct collective *collective, int root_side) {
    int *input = malloc(ROOM * sizeof *input), *expected = malloc(ROOM * sizeof *expected);
    int *actual = malloc(ROOM * sizeof *actual);
    for (int i = 0; i < ROOM; ++i) {
        input[i] = 10000 * side + 100 * rank + i;
        expected[i] = actual[i] = input[i] + 1;
    }
    struct arguments arguments = {.send = input,
                                  .send_count = COUNT,
                                  .send_type = MPI_INT,
                                  .recv = expected,
                                  .recv_count = count_of(collective),
                                  .recv_type = MPI_INT,
                                  .op = MPI_SUM,
                                  .root = root_of(root_side),
                                  .comm = between};
    EXPECT(call(collective, &arguments, 1) == MPI_SUCCESS);
    arguments.recv = actual;
    EXPECT(call(collective, &arguments, 0) == MPI_SUCCESS);
    EXPECT(memcmp(expected, actual, ROOM * sizeof *actual) == 0);
    free(input);
    free(expected);
    free(actual);
}

/* Something comes at all, from the other side and from nowhere else. */
static void broadcast(void) {
    int data[COUNT];
    for (int i = 0; i < COUNT; ++i)
        data[i] = side == 0 && rank == 0 ? i : -1;
    EXPECT(MPI_Bcast(data, COUNT, MPI_INT, root_of(0), between) == MPI_SUCCESS);
    for (int i = 0; i < COUNT; ++i)
        EXPECT(data[i] == (side == 1 || rank == 0 ? i : -1));
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
    for (int collective = 0; collective < COLLECTIVES; ++collective) {
        for (int root_side = 0; root_side < 2; ++root_side)
            compare(&collectives[collective], root_side);
        EXPECT(strcmp(libcoll_choice(collectives[collective].name, 64, between), "native") == 0);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&local);
    return finish();
}
