/*
 * A profiler: counts what it sees, tells it at the end, and calls PMPI_ as profilers do. It can be
 * preloaded before the library or after it. Revoking is counted and not carried out, as few MPI
 * libraries can.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

/* The functions that count, by the names that are told. */
enum seen {
    INIT,
    FINALIZE,
    FREE,
    DISCONNECT,
    MERGE,
    SESSION_INIT,
    SESSION_FINALIZE,
    FROM_GROUP,
    BCAST,
    START,
    STARTALL,
    REQUEST_FREE,
    CANCEL,
    REVOKE,
    REVOKE_INSIDE, /* by PMPIX_, as only the library does */
    FUNCTIONS
};

static const char *const names[FUNCTIONS] = {
    [INIT] = "init",
    [FINALIZE] = "finalize",
    [FREE] = "free",
    [DISCONNECT] = "disconnect",
    [MERGE] = "merge",
    [SESSION_INIT] = "session-init",
    [SESSION_FINALIZE] = "session-finalize",
    [FROM_GROUP] = "from-group",
    [BCAST] = "bcast",
    [START] = "start",
    [STARTALL] = "startall",
    [REQUEST_FREE] = "request-free",
    [CANCEL] = "cancel",
    [REVOKE] = "revoke",
    [REVOKE_INSIDE] = "inside",
};

static int seen[FUNCTIONS];

__attribute__((destructor)) static void tell(void) {
    if (getenv("TELL_WHAT_IS_SEEN") == NULL || seen[INIT] + seen[FINALIZE] == 0)
        return;
    char line[512] = "seen:"; /* as a whole, so that those of other ranks do not come between */
    size_t length = strlen(line);
    for (int i = 0; i < FUNCTIONS; ++i)
        length +=
            (size_t)snprintf(line + length, sizeof line - length, " %s %d", names[i], seen[i]);
    puts(line);
}

int MPI_Init(int *argc, char ***argv) {
    ++seen[INIT];
    return PMPI_Init(argc, argv);
}

int MPI_Finalize(void) {
    ++seen[FINALIZE];
    return PMPI_Finalize();
}

int MPI_Comm_free(MPI_Comm *comm) {
    ++seen[FREE];
    return PMPI_Comm_free(comm);
}

int MPI_Comm_disconnect(MPI_Comm *comm) {
    ++seen[DISCONNECT];
    return PMPI_Comm_disconnect(comm);
}

int MPI_Intercomm_merge(MPI_Comm between, int high, MPI_Comm *comm) {
    ++seen[MERGE];
    return PMPI_Intercomm_merge(between, high, comm);
}

#if MPI_VERSION >= 4
int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
    ++seen[SESSION_INIT];
    return PMPI_Session_init(info, handler, session);
}

int MPI_Session_finalize(MPI_Session *session) {
    ++seen[SESSION_FINALIZE];
    return PMPI_Session_finalize(session);
}

int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info,
                               MPI_Errhandler handler, MPI_Comm *comm) {
    ++seen[FROM_GROUP];
    return PMPI_Comm_create_from_group(group, tag, info, handler, comm);
}
#endif

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    ++seen[BCAST];
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Start(MPI_Request *request) {
    ++seen[START];
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
    ++seen[STARTALL];
    return PMPI_Startall(count, requests);
}

int MPI_Request_free(MPI_Request *request) {
    ++seen[REQUEST_FREE];
    return PMPI_Request_free(request);
}

int MPI_Cancel(MPI_Request *request) {
    ++seen[CANCEL];
    return PMPI_Cancel(request);
}

int MPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_revoke(MPI_Comm comm);

int MPIX_Comm_revoke(MPI_Comm comm) {
    (void)comm;
    ++seen[REVOKE];
    return MPI_SUCCESS;
}

int PMPIX_Comm_revoke(MPI_Comm comm) {
    int result = MPI_UNEQUAL;
    ++seen[REVOKE_INSIDE];
    PMPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    return result == MPI_CONGRUENT ? MPI_SUCCESS : MPI_ERR_COMM;
}
