/* Types that MPI_Type_create_f90_real makes are predefined: nobody may free them. */
#include "program.h"

enum { REALS = 60 };

static void broadcast(MPI_Datatype type, int count, int bytes, int root) {
    int rank;
    char data[REALS * 16];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < bytes; ++i)
        data[i] = (char)(rank == root ? i * 7 + root : -1);
    EXPECT(MPI_Bcast(data, count, type, root, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < bytes; ++i)
        EXPECT(data[i] == (char)(i * 7 + root));
}

static void use(MPI_Datatype real) {
    MPI_Datatype several, twin;
    int size;
    MPI_Type_size(real, &size);
    MPI_Type_contiguous(REALS / 2, real, &several);
    MPI_Type_commit(&several);
    MPI_Type_dup(real, &twin);
    for (int round = 0; round < 3; ++round) {
        broadcast(real, REALS, REALS * size, 0);
        broadcast(several, 2, REALS * size, 1);
        broadcast(twin, REALS, REALS * size, 0);
    }
    MPI_Type_free(&several);
    MPI_Type_free(&twin);
}

int main(int argc, char **argv) {
    MPI_Datatype real;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    /* An MPI library without Fortran has no such types. */
    if (MPI_Type_create_f90_real(6, 30, &real) == MPI_SUCCESS && real != MPI_DATATYPE_NULL)
        use(real);
    else
        printf("skipped: no Fortran types\n");
    return finish();
}
