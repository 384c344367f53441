/*
 * All collectives on communicators of ranks that may have other libraries or settings: right in any
 * case. Says which algorithm serves a broadcast on communicators that have all ranks and all but
 * the last one. With `unseen`, the library does not see MPI_Init, as if a profiler stood before it.
 */
#include "program.h"

extern const char *libcoll_choice(const char *collective, MPI_Aint bytes, MPI_Comm comm)
    __attribute__((weak));

static void use(const char *name, MPI_Comm comm) {
    int rank;
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int bytes = 40; bytes < 800; bytes += 64)
            EXPECT(!differs(collective, bytes, 0, 1, comm));
    MPI_Comm_rank(comm, &rank);
    const char *choice = libcoll_choice == NULL ? "?" : libcoll_choice("bcast", 500, comm);
    if (rank == 0)
        printf("%s %s\n", name, choice);
}

/* Both halves again, by way of an intercommunicator; then a part of that when it is gone. */
static void use_merged(int rank, int size) {
    MPI_Comm half, between, merged, part;
    MPI_Comm_split(MPI_COMM_WORLD, rank >= size / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank >= size / 2 ? 0 : size / 2, 7, &between);
    MPI_Intercomm_merge(between, rank >= size / 2, &merged);
    use("merged", merged);
    MPI_Comm_split(merged, 0, -rank, &part);
    MPI_Comm_free(&merged);
    use("part-of-merged", part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Comm comm;
    if (argc > 1 && strcmp(argv[1], "unseen") == 0)
        PMPI_Init(&argc, &argv);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    use("world", MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use("duplicate", comm);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    use("reversed", comm);
    MPI_Comm_free(&comm);
    use_merged(rank, size);
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 ? MPI_UNDEFINED : 0, rank, &comm);
    if (comm != MPI_COMM_NULL) {
        use("part", comm);
        MPI_Comm_free(&comm);
    }
    return finish();
}
