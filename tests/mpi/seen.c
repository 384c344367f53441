/*
 * A program of some calls, for a profiler to see: one communicator that is freed, one broadcast.
 *
 *   seen [revoke|meetings]   revoke the communicator; or make others in ways in which ranks meet
 */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#ifdef MPICH_VERSION
#define REVOKE(comm) MPIX_Comm_revoke(comm)
#else
#define REVOKE(comm) MPI_SUCCESS
#endif

/* The even and the odd ranks merge. Both ends of what they use are disconnected. */
static void merge(void) {
    int rank;
    MPI_Comm half, between, merged;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &between);
    MPI_Intercomm_merge(between, rank % 2, &merged);
    MPI_Comm_disconnect(&merged);
    MPI_Comm_disconnect(&between);
    MPI_Comm_disconnect(&half);
}

#if MPI_VERSION >= 4
static void use_session(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "a test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_disconnect(&comm);
    MPI_Session_finalize(&session);
}
#else
static void use_session(void) {
}
#endif

int main(int argc, char **argv) {
    char data[100] = "";
    const char *what = argc > 1 ? argv[1] : "";
    int error;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    error = MPI_Bcast(data, sizeof data, MPI_BYTE, 0, comm);
    if (strcmp(what, "revoke") == 0)
        error |= REVOKE(comm);
    if (strcmp(what, "meetings") == 0) {
        merge();
        use_session();
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return error == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
