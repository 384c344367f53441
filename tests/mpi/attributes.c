/* The library's private communicator does not call the application's attribute functions. */
#include "program.h"

static int copies, deletions;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm;
    (void)key;
    (void)extra;
    ++copies;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    ++deletions;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int key, value = 7, found;
    int *seen;
    MPI_Comm comm, twin;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &value);
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int bytes = 1; bytes < 1200; bytes += 64)
            EXPECT(!differs(collective, bytes, 0, 1, comm));
    EXPECT(copies == 0 && deletions == 0);
    /* A duplicate that the application makes copies its attributes, and none of ours. */
    MPI_Comm_dup(comm, &twin);
    EXPECT(copies == 1);
    MPI_Comm_get_attr(twin, key, &seen, &found);
    EXPECT(found && *seen == 7);
    EXPECT(!differs(2, 100, 0, 1, twin));
    MPI_Comm_free(&twin);
    EXPECT(deletions == 1);
    EXPECT(!differs(0, 100, 0, 1, comm));
    MPI_Comm_free(&comm);
    EXPECT(copies == 1 && deletions == 2);
    MPI_Comm_free_keyval(&key);
    return finish();
}
