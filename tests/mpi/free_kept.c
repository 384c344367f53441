/*
 * An MPI library may keep a communicator on one rank after MPI_Comm_free, with its attributes,
 * until requests on it are complete. Here, rank 0 keeps the communicator itself until rank 1 has
 * freed it and sent a message: so what ranks free together must not wait for the deletion of an
 * attribute. The library finds the function of the MPI library by dlsym, which the linker wraps.
 */
#include "program.h"

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);
extern const char *libcoll_choice(const char *collective, MPI_Aint bytes, MPI_Comm comm);

static MPI_Comm keeps = MPI_COMM_NULL, kept = MPI_COMM_NULL;

static int keep_or_free(MPI_Comm *comm) {
    if (keeps == MPI_COMM_NULL || *comm != keeps)
        return PMPI_Comm_free(comm);
    kept = keeps;
    keeps = *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

void *__wrap_dlsym(void *handle, const char *name) {
    int (*const mine)(MPI_Comm *comm) = keep_or_free;
    void *found;
    if (strcmp(name, "MPI_Comm_free") != 0)
        return __real_dlsym(handle, name);
    memcpy(&found, &mine, sizeof found);
    return found;
}

int main(int argc, char **argv) {
    int rank, sum = 0, word = 7;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(strcmp(libcoll_choice("allreduce", 4, comm), "configured_tree_flat") == 0);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == 1);
    keeps = rank == 0 ? comm : MPI_COMM_NULL;
    puts("freeing");
    fflush(stdout);
    MPI_Comm_free(&comm);
    EXPECT(comm == MPI_COMM_NULL);
    if (rank == 0) {
        EXPECT(kept != MPI_COMM_NULL);
        MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (kept != MPI_COMM_NULL)
            EXPECT(PMPI_Comm_free(&kept) == MPI_SUCCESS);
    } else {
        MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    return finish();
}
