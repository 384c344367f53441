/*
 * A profiler: counts what it sees, tells it at the end, and calls PMPI_ as profilers do. It can be
 * preloaded before the library or after it. Revoking is counted and not carried out, as few MPI
 * libraries can.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

static int begun, ended, freed, broadcasts, revoked, revoked_inside;

__attribute__((destructor)) static void tell(void) {
    const char *wanted = getenv("TELL_WHAT_IS_SEEN");
    if (wanted != NULL && begun + ended > 0)
        printf("seen: init %d finalize %d free %d bcast %d revoke %d inside %d\n", begun, ended,
               freed, broadcasts, revoked, revoked_inside);
}

int MPI_Init(int *argc, char ***argv) {
    ++begun;
    return PMPI_Init(argc, argv);
}

int MPI_Finalize(void) {
    ++ended;
    return PMPI_Finalize();
}

int MPI_Comm_free(MPI_Comm *comm) {
    ++freed;
    return PMPI_Comm_free(comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    ++broadcasts;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_revoke(MPI_Comm comm);

int MPIX_Comm_revoke(MPI_Comm comm) {
    (void)comm;
    ++revoked;
    return MPI_SUCCESS;
}

int PMPIX_Comm_revoke(MPI_Comm comm) {
    int result = MPI_UNEQUAL;
    ++revoked_inside;
    PMPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    return result == MPI_CONGRUENT ? MPI_SUCCESS : MPI_ERR_COMM;
}
