/*
 * Meetings that go on while calls run, at the end of communicators and of MPI: no request of them
 * may be active any more. Link with `WRAPS` of test_adaptive.py.
 *
 *   adaptive_pending free|keep N: so many calls on a communicator that is freed, or not
 *   adaptive_pending two N: so many calls of each of two sizes in turn
 */
#include "program.h"

#include "coll.h"

enum { COUNT = 64 };

/* Requests of meetings that are active, and how many reduces were begun. */
static MPI_Request requests[8];
static int active, begun;

static int note(int error, MPI_Request request) {
    requests[active++ % 8] = request;
    EXPECT(active <= 8);
    return error;
}

int __real_PMPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                        int root, MPI_Comm comm, MPI_Request *request);
int __wrap_PMPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                        int root, MPI_Comm comm, MPI_Request *request);
int __wrap_PMPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                        int root, MPI_Comm comm, MPI_Request *request) {
    const int error = __real_PMPI_Ireduce(in, out, count, type, op, root, comm, request);
    ++begun;
    return note(error, *request);
}

int __real_PMPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                       MPI_Request *request);
int __wrap_PMPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                       MPI_Request *request);
int __wrap_PMPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                       MPI_Request *request) {
    const int error = __real_PMPI_Ibcast(data, count, type, root, comm, request);
    return note(error, *request);
}

/* Routines wait for requests of their own. */
int __real_PMPI_Wait(MPI_Request *request, MPI_Status *status);
int __wrap_PMPI_Wait(MPI_Request *request, MPI_Status *status);
int __wrap_PMPI_Wait(MPI_Request *request, MPI_Status *status) {
    int place = 0;
    while (place < active && requests[place] != *request)
        ++place;
    if (place < active)
        requests[place] = requests[--active];
    return __real_PMPI_Wait(request, status);
}

static int was_freed;

int __real_PMPI_Comm_free(MPI_Comm *comm);
int __wrap_PMPI_Comm_free(MPI_Comm *comm);
int __wrap_PMPI_Comm_free(MPI_Comm *comm) {
    EXPECT(active == 0);
    was_freed = 1;
    return __real_PMPI_Comm_free(comm);
}

static void expect_none(void) {
    EXPECT(active == 0);
}

static void add_up(MPI_Comm comm, int count) {
    int from[COUNT] = {1}, to[COUNT];
    MPI_Allreduce(from, to, count, MPI_INT, MPI_SUM, comm);
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    atexit(expect_none);
    const int calls = atoi(argv[2]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < calls; ++i) {
        add_up(comm, COUNT);
        if (strcmp(argv[1], "two") == 0)
            add_up(comm, COUNT / 2);
    }
    if (strcmp(argv[1], "keep") != 0) {
        MPI_Comm_free(&comm);
        EXPECT(was_freed);
    }
    if (calls >= 10) /* two of the shortest periods */
        EXPECT(begun > 0);
    return finish();
}
