/*
 * Sums of floating-point numbers by every algorithm of allreduce, each of which serves some
 * lengths in the library that this is linked with: all ranks get the same bits, and nearly the sum.
 */
#include <math.h>

#include "program.h"

enum { STEP = 64 / sizeof(double), LONGEST = 128 * STEP };

static double input[LONGEST], output[LONGEST], of_first[LONGEST];

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Each order of adding these up has its own rounding. */
    for (int i = 0; i < LONGEST; ++i)
        input[i] = 1.0 / (3 * rank + 7 + i % 11);
    for (int count = STEP; count < LONGEST; count += STEP / 2 + 1) {
        MPI_Allreduce(input, output, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        memcpy(of_first, output, sizeof output);
        PMPI_Bcast(of_first, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        EXPECT(memcmp(of_first, output, (size_t)count * sizeof *output) == 0);
        PMPI_Allreduce(input, of_first, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; ++i)
            EXPECT(fabs(output[i] - of_first[i]) < 1e-12);
    }
    return finish();
}
