/* Datatypes made by the functions of MPI 4 for large counts, and types at absolute addresses. */
#include "program.h"

enum { INTS = 90 };

static void broadcast(MPI_Datatype type, void *where, int count, int *data) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int root = 0; root < size; ++root) {
        for (int i = 0; i < INTS; ++i)
            data[i] = rank == root ? 1000 * root + i : -1;
        EXPECT(MPI_Bcast(where, count, type, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int i = 0; i < INTS; ++i)
            EXPECT(data[i] == 1000 * root + i);
    }
}

static void absolute(int *data) {
    MPI_Datatype type;
    MPI_Aint address;
    int length = INTS;
    MPI_Get_address(data, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast(type, MPI_BOTTOM, 1, data);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    int data[INTS];
    MPI_Init(&argc, &argv);
    absolute(data);
#if MPI_VERSION >= 4
    MPI_Datatype type;
    MPI_Type_contiguous_c(INTS / 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast(type, data, 3, data);
    MPI_Type_free(&type);
    MPI_Type_vector_c(INTS / 2, 2, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast(type, data, 1, data);
    MPI_Type_free(&type);
#endif
    return finish();
}
