/* A program of some calls, for a profiler to see: one communicator that is freed, one broadcast. */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#ifdef MPICH_VERSION
#define REVOKE(comm) MPIX_Comm_revoke(comm)
#else
#define REVOKE(comm) MPI_SUCCESS
#endif

int main(int argc, char **argv) {
    char data[100] = "";
    int error;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    error = MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm);
    if (argc > 1 && strcmp(argv[1], "revoke") == 0)
        error |= REVOKE(comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return error == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
