/*
 * Calls whose types say nothing on some ranks: a barrier has none, a gather needs one at its root
 * only, and an allgather may have other ones on each rank.
 */
#include "program.h"

int main(int argc, char **argv) {
    enum { COUNT = 64 };
    int rank, size;
    MPI_Datatype all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(COUNT, MPI_BYTE, &all);
    MPI_Type_commit(&all);
    const size_t room = (size_t)size * COUNT;
    char *own = malloc(COUNT), *gathered = malloc(room);
    memset(own, rank + 1, COUNT);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int call = 0; call < 2; ++call) {
        memset(gathered, 0, room);
        if (call == 0)
            MPI_Gather(own, COUNT, MPI_BYTE, gathered, COUNT,
                       rank == 0 ? MPI_BYTE : MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
        else
            MPI_Allgather(own, COUNT, MPI_BYTE, gathered, rank % 2 ? COUNT : 1,
                          rank % 2 ? MPI_BYTE : all, MPI_COMM_WORLD);
        for (size_t i = 0; i < room; ++i)
            EXPECT(gathered[i] == (rank == 0 || call == 1 ? (char)(i / COUNT + 1) : 0));
    }
    free(own);
    free(gathered);
    MPI_Type_free(&all);
    return finish();
}
