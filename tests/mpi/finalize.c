/*
 * MPI_Finalize calls the delete function of an attribute of MPI_COMM_SELF, which calls
 * collectives: they go on as before, as other ranks may call theirs outside of MPI_Finalize.
 *
 *   finalize [used | apart]
 */
#include "program.h"

static int called;

static void call_all(void) {
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int bytes = 0; bytes < 500; bytes += 100)
            EXPECT(!differs(collective, bytes, 1, 5, MPI_COMM_WORLD));
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    ++called;
    call_all();
    return MPI_SUCCESS;
}
int main(int argc, char **argv) {
    int key, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int apart = argc > 1 && strcmp(argv[1], "apart") == 0;
    if (argc > 1)
        EXPECT(!differs(2, 100, 0, 1, MPI_COMM_WORLD));
    if (!apart || rank == 0) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    } else {
        call_all();
    }
    MPI_Finalize();
    EXPECT(called == (!apart || rank == 0));
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
