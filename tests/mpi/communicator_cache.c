/* Communicators are known by their handles as long as they exist, and no longer. */
#include "coll.h"
#include "program.h"

enum { TIMES = 300 };

/* A call without data on a communicator of this rank alone; *freed is what its handle was. */
static void alone(MPI_Comm *freed) {
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm);
    EXPECT(!coll_cached_native(comm));
    MPI_Bcast(NULL, 0, MPI_BYTE, 0, comm);
    EXPECT(coll_cached_native(comm));
    *freed = comm;
    MPI_Comm_free(&comm);
    EXPECT(!coll_cached_native(*freed));
}

/* Whether what is known by the handle is what MPI says. */
static int same_as_mpi(MPI_Comm comm) {
    int rank, size;
    const struct coll_comm *cc = coll_cached(comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return cc != NULL && cc->rank == rank && cc->size == size;
}

/* Calls with and without data on all ranks; returns whether the handle is that one. */
static int together(MPI_Comm freed) {
    int value = 1;
    MPI_Comm comm, known;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int again = comm == freed;
    MPI_Bcast(NULL, 0, MPI_BYTE, 0, comm);
    EXPECT(!coll_cached_native(comm));
    EXPECT(coll_cached(comm) == NULL);
    MPI_Bcast(&value, 1, MPI_INT, 0, comm);
    EXPECT(!coll_cached_native(comm));
    EXPECT(same_as_mpi(comm));
    known = comm;
    MPI_Comm_free(&comm);
    EXPECT(coll_cached(known) == NULL);
    return again;
}

int main(int argc, char **argv) {
    int again = 0;
    MPI_Comm freed;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < TIMES; ++i) {
        alone(&freed);
        again += together(freed);
    }
    EXPECT(again > 0); /* else nothing was tried */
    return finish();
}
