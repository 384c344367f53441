/*
 * Programs without MPI_Init, or with sessions besides it.
 *
 *   sessions again     MPI ends and begins again, with other attributes under the same numbers
 *   sessions outlive   a thread's session goes on while MPI_Finalize comes, at different times
 *   sessions unfinished   all wait for rank 0, which never starts a broadcast: a mistake, by which
 *                      the end of the last session must not hang
 *
 * With -DOF_FORTRAN, sessions and their communicators are made as mpi_f08 makes them.
 */
#include "program.h"

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#ifdef OF_FORTRAN
void mpi_session_init_f08_(const MPI_Fint *info, const MPI_Fint *handler, MPI_Fint *session,
                           MPI_Fint *ierror);
void mpi_session_finalize_f08_(MPI_Fint *session, MPI_Fint *ierror);
void mpi_comm_create_from_group_f08_(const MPI_Fint *group, const char *text, const MPI_Fint *info,
                                     const MPI_Fint *handler, MPI_Fint *comm, MPI_Fint *ierror,
                                     size_t length);

static void begin(MPI_Info info, MPI_Session *session) {
    const MPI_Fint of_info = MPI_Info_c2f(info);
    const MPI_Fint fatal = MPI_Errhandler_c2f(MPI_ERRORS_ARE_FATAL);
    MPI_Fint made = 0, error = -1;
    mpi_session_init_f08_(&of_info, &fatal, &made, &error);
    EXPECT(error == MPI_SUCCESS);
    *session = MPI_Session_f2c(made);
}

static void make(MPI_Group group, MPI_Comm *comm) {
    const MPI_Fint of_group = MPI_Group_c2f(group), none = MPI_Info_c2f(MPI_INFO_NULL);
    const MPI_Fint fatal = MPI_Errhandler_c2f(MPI_ERRORS_ARE_FATAL);
    MPI_Fint made = 0;
    mpi_comm_create_from_group_f08_(&of_group, "a test  ", &none, &fatal, &made, NULL, 8);
    *comm = MPI_Comm_f2c(made);
}

static void end(MPI_Session *session) {
    MPI_Fint ended = MPI_Session_c2f(*session), error = -1;
    mpi_session_finalize_f08_(&ended, &error);
    EXPECT(error == MPI_SUCCESS && MPI_Session_f2c(ended) == MPI_SESSION_NULL);
}
#else
static void begin(MPI_Info info, MPI_Session *session) {
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, session);
}

static void make(MPI_Group group, MPI_Comm *comm) {
    MPI_Comm_create_from_group(group, "a test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm);
}

static void end(MPI_Session *session) {
    MPI_Session_finalize(session);
}
#endif

enum { TIMES = 4, CALLS = 100, SHORT_WHILE = 5000, LONG_WHILE = 100000 }; /* µs */

static MPI_Comm everyone(MPI_Session session) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    make(group, &comm);
    MPI_Group_free(&group);
    return comm;
}

/* The first time only the library has a key; later the application has one first. */
static void again(int times) {
    int data[64], *value, found, key = MPI_KEYVAL_INVALID;
    MPI_Session session;
    begin(MPI_INFO_NULL, &session);
    MPI_Comm comm = everyone(session);
    for (int i = 0; i < 64; ++i)
        data[i] = 3; /* a kind of communicators, and a number of ranks; no communicator */
    if (times > 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
        MPI_Comm_set_attr(comm, key, data);
    }
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        EXPECT(!differs(collective, 400, 0, 1, comm));
    if (times > 0) {
        MPI_Comm_get_attr(comm, key, &value, &found);
        EXPECT(found && value == data);
        MPI_Comm_free_keyval(&key);
    }
    MPI_Comm_free(&comm);
    end(&session);
}

static atomic_int begun;

static void *library(void *unused) {
    MPI_Info info;
    MPI_Session session;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    begin(info, &session);
    MPI_Info_free(&info);
    MPI_Comm comm = everyone(session);
    atomic_store(&begun, 1);
    for (int call = 0; call < CALLS; ++call) {
        EXPECT(!differs(call % COLLECTIVES, 400, 0, 1, comm));
        usleep(SHORT_WHILE);
    }
    MPI_Comm_free(&comm);
    end(&session);
    return unused;
}

static void outlive(void) {
    pthread_t thread;
    int provided, rank;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_create(&thread, NULL, library, NULL);
    while (!atomic_load(&begun))
        usleep(SHORT_WHILE);
    EXPECT(!differs(0, 400, 0, 1, MPI_COMM_WORLD));
    usleep((useconds_t)rank * LONG_WHILE);
    MPI_Finalize();
    pthread_join(thread, NULL);
}

static void leave_unfinished(void) {
    static int data;
    int rank;
    MPI_Request request;
    MPI_Session session;
    begin(MPI_INFO_NULL, &session);
    MPI_Comm comm = everyone(session);
    MPI_Comm_rank(comm, &rank);
    MPI_Bcast_init(&data, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
    if (rank != 0)
        MPI_Start(&request);
    MPI_Comm_free(&comm);
    end(&session);
}

int main(int argc, char **argv) {
    const char *use = argc > 1 ? argv[1] : "outlive";
    for (int times = 0; times < TIMES && strcmp(use, "again") == 0; ++times)
        again(times);
    if (strcmp(use, "outlive") == 0)
        outlive();
    if (strcmp(use, "unfinished") == 0)
        leave_unfinished();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
#else
int main(void) {
    return EXIT_SUCCESS;
}
#endif
