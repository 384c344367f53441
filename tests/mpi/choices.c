/*
 * Says which algorithm serves what on which communicator, of the collectives that it is given:
 * `world alltoall 64 ring`.
 *
 *   choices COLLECTIVE…
 */
#include "program.h"

#include "libcoll.h"

enum { STEP = 64, BYTES_MOST = 128 * STEP };

static int collective_count;
static char **names;

static void print(const char *name, MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < collective_count; ++i) {
        for (int bytes = 1; bytes < BYTES_MOST; bytes += STEP) {
            const char *choice = libcoll_choice(names[i], bytes, comm);
            if (rank == 0)
                printf("%s %s %d %s\n", name, names[i], bytes, choice);
        }
    }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    collective_count = argc - 1;
    names = argv + 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    print("world", MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    print("reversed", comm);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &comm);
    if (rank != size - 1)
        print("part", comm);
    MPI_Comm_free(&comm);
    print("self", MPI_COMM_SELF);
    EXPECT(libcoll_choice("nonsense", 1, MPI_COMM_WORLD) == NULL);
    EXPECT(strcmp(libcoll_cluster(), "random") == 0);
    EXPECT(strlen(libcoll_topology_hash()) == 64);
    EXPECT(strcmp(libcoll_version(), LIBCOLL_VERSION) == 0);
    return finish();
}
