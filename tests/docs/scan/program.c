/* Calls MPI_Scan of several lengths, in place as well, and says whether all results are right. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { LONGEST = 20000 };

static int rank, wrong;
static int mine[LONGEST], result[LONGEST];

static void fill(int *elements, int count) {
    for (int i = 0; i < count; ++i)
        elements[i] = rank + i;
}

/* The i-th element of the ranks up to this one: i + (1 + i) + ... + (rank + i). */
static void look(int count) {
    for (int i = 0; i < count; ++i)
        wrong += result[i] != (rank + 1) * i + rank * (rank + 1) / 2;
}

static void scan(int count) {
    fill(mine, count);
    MPI_Scan(mine, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    look(count);
    fill(result, count);
#if MPI_VERSION >= 4
    MPI_Scan_c(MPI_IN_PLACE, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#else
    MPI_Scan(MPI_IN_PLACE, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#endif
    look(count);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int count = 1; count <= LONGEST; count *= 3)
        scan(count);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && wrong == 0)
        printf("right\n");
    MPI_Finalize();
    return EXIT_SUCCESS;
}
