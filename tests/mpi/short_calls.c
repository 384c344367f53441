/*
 * Calls by a plan, each letter of which is one:
 *
 *   s   a broadcast of 8 bytes      l   one of 64 KiB       b   a barrier
 *   g   an allgather of 4 KiB from each rank                v   an alltoallv of 4 bytes for each
 *
 * They are on MPI_COMM_WORLD, until a letter takes another communicator:
 *
 *   d   a duplicate of the present one      w   MPI_COMM_WORLD
 */
#include "program.h"

enum { LONG = 64 * 1024, BLOCK = 4096 };

static char data[PEERS_MOST * BLOCK];

static void broadcast(MPI_Comm comm, int bytes, int number) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    memset(data, rank == 0 ? number : -1, (size_t)bytes);
    EXPECT(MPI_Bcast(data, bytes, MPI_BYTE, 0, comm) == MPI_SUCCESS);
    EXPECT(data[0] == (char)number && data[bytes - 1] == (char)number);
}

static void exchange(MPI_Comm comm) {
    const struct blocks blocks = blocks_of(1);
    int sent[2 * PEERS_MOST], received[2 * PEERS_MOST], rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; ++i)
        sent[blocks.displacements[i]] = rank;
    EXPECT(MPI_Alltoallv(sent, blocks.counts, blocks.displacements, MPI_INT, received,
                         blocks.counts, blocks.displacements, MPI_INT, comm) == MPI_SUCCESS);
    for (int i = 0; i < size; ++i)
        EXPECT(received[blocks.displacements[i]] == i);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm comm = MPI_COMM_WORLD;
    for (int number = 0; argc > 1 && argv[1][number] != '\0'; ++number) {
        const char letter = argv[1][number];
        if (letter == 'w')
            comm = MPI_COMM_WORLD;
        else if (letter == 'd')
            EXPECT(MPI_Comm_dup(comm, &comm) == MPI_SUCCESS);
        else if (letter == 's' || letter == 'l')
            broadcast(comm, letter == 's' ? 8 : LONG, number % 100);
        else if (letter == 'b')
            EXPECT(MPI_Barrier(comm) == MPI_SUCCESS);
        else if (letter == 'v')
            exchange(comm);
        else
            EXPECT(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, data, BLOCK, MPI_BYTE, comm) ==
                   MPI_SUCCESS);
    }
    return finish();
}
