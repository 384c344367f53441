/*
 * While a communicator is freed, a function of the application that deletes an attribute calls
 * collectives on it; afterwards others have its handle.
 */
#include "program.h"

static int called, copies;

static void call_all(MPI_Comm comm) {
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int bytes = 0; bytes < 1200; bytes += 400)
            EXPECT(!differs(collective, bytes, 0, 1, comm));
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key;
    (void)value;
    (void)extra;
    ++called;
    call_all(comm);
    if (copies) {
        MPI_Comm copy;
        MPI_Comm_dup(comm, &copy);
        call_all(copy);
        MPI_Comm_free(&copy);
    }
    return MPI_SUCCESS;
}

/* The attribute is set before the library hangs its own there, or after that; on some after that.
 */
static void use(int times) {
    int rank, size, key;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int part = times % 2 ? rank / 2 : 0, late = times % 3 + (times % 3 == 2) * rank % 2;
    copies = times % 3 != 2; /* with attributes in another order on some ranks, MPICH may fail */
    MPI_Comm_split(MPI_COMM_WORLD, part, times % 4 < 2 ? rank : -rank, &comm);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL);
    if (late)
        call_all(comm);
    MPI_Comm_set_attr(comm, key, NULL);
    if (!late)
        call_all(comm);
    if (times % 5 == 4)
        MPI_Comm_disconnect(&comm);
    else
        MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int times = 0; times < 20; ++times)
        use(times);
    EXPECT(called == 20);
    return finish();
}
