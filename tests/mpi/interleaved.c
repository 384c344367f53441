/* Calls of all kinds back to back, sizes, roots and communicators at random: interleaved CALLS */
#include "program.h"

int main(int argc, char **argv) {
    int rank, size;
    unsigned state = 2006;
    MPI_Comm comms[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int calls = argc > 1 ? atoi(argv[1]) : 100;
    for (int call = 0; call < calls; ++call) {
        const int collective = (int)(next_random(&state) % COLLECTIVES);
        const int root = (int)(next_random(&state) % (unsigned)size);
        const int which = (int)(next_random(&state) % 3);
        const unsigned most = call % 50 == 0 ? 100000 : 1400;
        const int bytes = (int)(next_random(&state) % most);
        EXPECT(!differs(collective, bytes, root, (unsigned)call, comms[which]));
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
    return finish();
}
