/*
 * A program of some calls, for a profiler to see: one communicator that is freed, one broadcast.
 *
 *   seen [revoke|meetings|requests]   revoke the communicator; or make others in ways in which
 *                                     ranks meet; or start and free requests
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

/* A persistent alltoall, and two receives of which one gets nothing and one has no sender. */
static int use_requests(MPI_Comm comm) {
    enum { COUNT = 20000, PEERS = 4 };
    static int send[PEERS * COUNT], recv[PEERS * COUNT];
    MPI_Request pair[2], lonely;
    int rank, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < PEERS * COUNT; ++i)
        send[i] = rank * PEERS + i / COUNT;
    MPI_Alltoall_init(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, comm, MPI_INFO_NULL, &pair[0]);
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 9, comm, &pair[1]);
    MPI_Recv_init(NULL, 0, MPI_BYTE, rank, 9, comm, &lonely);
    MPI_Start(&pair[0]);
    MPI_Wait(&pair[0], MPI_STATUS_IGNORE);
    MPI_Startall(2, pair);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    MPI_Startall(1, &pair[1]);
    MPI_Wait(&pair[1], MPI_STATUS_IGNORE);
    MPI_Start(&lonely);
    MPI_Cancel(&lonely);
    MPI_Wait(&lonely, MPI_STATUS_IGNORE);
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    MPI_Request_free(&lonely);
    for (int i = 0; i < PEERS * COUNT; ++i)
        wrong |= recv[i] != i / COUNT * PEERS + rank;
    return wrong ? MPI_ERR_OTHER : MPI_SUCCESS;
}
#else
static void use_session(void) {
}

static int use_requests(MPI_Comm comm) {
    (void)comm;
    return MPI_SUCCESS;
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
    if (strcmp(what, "requests") == 0)
        error |= use_requests(comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return error == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
