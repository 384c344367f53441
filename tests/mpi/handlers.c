/*
 * The error handler of a communicator is the application's again after a first call that makes the
 * private duplicate: the handler that was there before or, if another thread sets one meanwhile,
 * that one. Linked with --wrap=PMPI_Comm_create, which makes the duplicate.
 */
#include "program.h"

int __real_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made);
int __wrap_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made);

static MPI_Errhandler meanwhile = MPI_ERRHANDLER_NULL;
static int made_now;

/* As another thread would, between two steps of the first call. */
int __wrap_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made) {
    ++made_now;
    if (meanwhile != MPI_ERRHANDLER_NULL)
        MPI_Comm_set_errhandler(comm, meanwhile);
    return __real_PMPI_Comm_create(comm, group, made);
}

static void ignore(MPI_Comm *where, int *code, ...) {
    (void)where;
    (void)code;
}

static void call_first(MPI_Errhandler before, MPI_Errhandler set, MPI_Errhandler after) {
    MPI_Comm comm;
    MPI_Errhandler found;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, before);
    made_now = 0;
    meanwhile = set;
    EXPECT(!differs(0, 400, 0, 1, comm));
    meanwhile = MPI_ERRHANDLER_NULL;
    EXPECT(made_now == 1);
    MPI_Comm_get_errhandler(comm, &found);
    EXPECT(found == after);
    MPI_Errhandler_free(&found);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Errhandler one, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(ignore, &one);
    MPI_Comm_create_errhandler(ignore, &other);
    const MPI_Errhandler all[] = {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, one};
    for (int i = 0; i < 3; ++i) {
        call_first(all[i], MPI_ERRHANDLER_NULL, all[i]);
        call_first(all[i], other, other);
        call_first(all[i], MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Errhandler_free(&one);
    MPI_Errhandler_free(&other);
    return finish();
}
