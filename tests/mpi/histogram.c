/* Calls whose numbers the test knows; with an argument, broadcasts of so many sizes, too. */
#include <locale.h>
#include <stdlib.h>

#include "program.h"

int main(int argc, char **argv) {
    static char data[1 << 16];
    static char result[1 << 16];
    double sum = 0, part = 1;
    int rank, size;
    MPI_Comm half;
    EXPECT(setlocale(LC_ALL, "") != NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int i = 0; i < 5; ++i)
        MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i)
        MPI_Bcast(data, 1000, MPI_BYTE, i % size, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i)
        MPI_Alltoall(data, 50, MPI_BYTE, result, 50, MPI_BYTE, half);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int bytes = 1; argc > 1 && bytes <= atoi(argv[1]); ++bytes)
        MPI_Bcast(data, bytes, MPI_BYTE, 0, half);
    MPI_Comm_free(&half);
    EXPECT(sum == size);
    return finish();
}
