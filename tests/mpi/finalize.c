/*
 * MPI_Finalize calls the delete function of an attribute of MPI_COMM_SELF, which calls
 * collectives: they are native, and nothing of ours comes to life again.
 *
 *   finalize [used]
 */
#include "program.h"

#include "libcoll.h"

static int called;

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    ++called;
    for (int kind = 0; kind < KINDS; ++kind)
        for (int bytes = 0; bytes < 500; bytes += 100)
            EXPECT(!differs(kind, bytes, 1, 5, MPI_COMM_WORLD));
    EXPECT(strcmp(libcoll_choice("bcast", 100, MPI_COMM_WORLD), "native") == 0);
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int key;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    if (argc > 1)
        EXPECT(!differs(2, 100, 0, 1, MPI_COMM_WORLD));
    MPI_Finalize();
    EXPECT(called == 1);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
