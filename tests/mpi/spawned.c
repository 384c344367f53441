/*
 * Processes of two worlds: a program starts itself again, and both are one communicator by merging.
 * Right there, on a part of it, and on a part that is used when the whole is gone.
 */
#include "program.h"

#include "libcoll.h"

enum { CHILDREN = 2, BYTES = 200 };

static void use(MPI_Comm comm) {
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        EXPECT(!differs(collective, BYTES, 0, 1, comm));
    EXPECT(strcmp(libcoll_choice("bcast", BYTES, comm), "binomial") == 0);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Comm parent, between, all, part, late;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                       MPI_ERRCODES_IGNORE);
    else
        between = parent;
    use(MPI_COMM_WORLD);
    MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Comm_split(all, 0, -rank, &part);
    MPI_Comm_split(all, rank % (size - 1) == 0, rank, &late);
    use(all);
    use(part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&all);
    use(late);
    MPI_Comm_free(&late);
    MPI_Comm_disconnect(&between);
    return finish();
}
