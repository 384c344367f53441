/*
 * With MPI_ERRORS_RETURN on the communicator alone, a mistake gives the same class of error as
 * the MPI library gives, and the communicator's own handler is told.
 *
 *   errors [COLLECTIVE]   with a collective: a rank that expects less than is sent
 */
#include "program.h"

enum { COUNT = 20 };

static MPI_Comm comm;
static int rank, size, handled;
static int buffer[COUNT * 64], other[COUNT * 64];

static void note(MPI_Comm *where, int *code, ...) {
    (void)where;
    (void)code;
    ++handled;
}

typedef int call_function(int native);

static int bad_root(int native) {
    return (native ? PMPI_Bcast : MPI_Bcast)(buffer, COUNT, MPI_INT, size, comm);
}

static int negative_root(int native) {
    return (native ? PMPI_Bcast : MPI_Bcast)(buffer, COUNT, MPI_INT, -5, comm);
}

static int negative_count(int native) {
    return (native ? PMPI_Bcast : MPI_Bcast)(buffer, -1, MPI_INT, 0, comm);
}

static int null_type(int native) {
    return (native ? PMPI_Bcast : MPI_Bcast)(buffer, COUNT, MPI_DATATYPE_NULL, 0, comm);
}

static int null_buffer(int native) {
    return (native ? PMPI_Bcast : MPI_Bcast)(NULL, COUNT, MPI_INT, 0, comm);
}

static int null_send_type(int native) {
    return (native ? PMPI_Alltoall : MPI_Alltoall)(buffer, COUNT, MPI_DATATYPE_NULL, other, COUNT,
                                                   MPI_INT, comm);
}

static int negative_send_count(int native) {
    return (native ? PMPI_Allgather : MPI_Allgather)(buffer, -3, MPI_INT, other, COUNT, MPI_INT,
                                                     comm);
}

static int null_send_buffer(int native) {
    return (native ? PMPI_Allgather : MPI_Allgather)(NULL, COUNT, MPI_INT, other, COUNT, MPI_INT,
                                                     comm);
}

static int null_recv_buffer(int native) {
    return (native ? PMPI_Alltoall : MPI_Alltoall)(buffer, COUNT, MPI_INT, NULL, COUNT, MPI_INT,
                                                   comm);
}

static int receive_in_place(int native) {
    return (native ? PMPI_Alltoall : MPI_Alltoall)(buffer, COUNT, MPI_INT, MPI_IN_PLACE, COUNT,
                                                   MPI_INT, comm);
}

static int same_buffers(int native) {
    return (native ? PMPI_Alltoall : MPI_Alltoall)(buffer, COUNT, MPI_INT, buffer, COUNT, MPI_INT,
                                                   comm);
}

static int no_communicator(int native) {
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return (native ? PMPI_Bcast : MPI_Bcast)(buffer, COUNT, MPI_INT, 0, MPI_COMM_NULL);
}

static const struct {
    const char *name;
    call_function *call;
} mistakes[] = {
    {"bad root", bad_root},
    {"negative root", negative_root},
    {"negative count", negative_count},
    {"null type", null_type},
    {"null buffer", null_buffer},
    {"null send type", null_send_type},
    {"negative send count", negative_send_count},
    {"null send buffer", null_send_buffer},
    {"null receive buffer", null_recv_buffer},
    {"receive in place", receive_in_place},
    {"same buffers", same_buffers},
    {"no communicator", no_communicator}, /* last: it changes the handlers of others */
};

static void compare(const char *name, call_function *call) {
    int expected, actual;
    handled = 0;
    MPI_Error_class(call(1), &expected);
    const int by_native = handled;
    MPI_Error_class(call(0), &actual);
    if (expected != actual || handled != 2 * by_native)
        fprintf(stderr, "%s: class %d in place of %d, handler told %d times in place of %d\n", name,
                actual, expected, handled - by_native, by_native);
    failures += expected != actual || handled != 2 * by_native;
}

/*
 * A rank that expects less than is sent: an error there, of the class that native gives, and
 * its handler is told once.
 */
static void truncate_message(const char *collective) {
    int class = MPI_SUCCESS, error;
    const int mine = rank == size - 1 ? COUNT / 2 : COUNT;
    handled = 0;
    if (strcmp(collective, "alltoall") == 0)
        error = MPI_Alltoall(buffer, mine, MPI_INT, other, mine, MPI_INT, comm);
    else if (strcmp(collective, "allgather") == 0)
        error = MPI_Allgather(buffer, mine, MPI_INT, other, mine, MPI_INT, comm);
    else
        error = MPI_Bcast(buffer, mine, MPI_INT, 0, comm);
    MPI_Error_class(error, &class);
    EXPECT(class == (rank == size - 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    EXPECT(handled == (rank == size - 1));
}

int main(int argc, char **argv) {
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    EXPECT(!differs(2, 100, 0, 1, comm));
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    if (argc > 1) {
        truncate_message(argv[1]);
        MPI_Errhandler_free(&handler);
        MPI_Comm_free(&comm);
        return finish();
    }
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i)
        compare(mistakes[i].name, mistakes[i].call);
    EXPECT(!differs(0, 100, 0, 1, comm)); /* and it works on */
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    return finish();
}
