/*
 * With LIBCOLL_DETERMINISTIC=1 a sum of floating-point numbers has the same bits whatever the
 * length of the message, the root and the reduction; prints them.
 */
#include <stdint.h>

#include "program.h"

enum { LONGEST = 20011 };

static int rank, size;
static double input[LONGEST], output[LONGEST], first;
static int known;

/* Two that cancel, and small ones of which each order of adding up loses others. */
static double operand(int of) {
    return of == 0 ? 1e16 : of == size - 1 ? -1e16 : 1.5 + 0.1 * of;
}

/* The results of this rank, all of the same operands, are one number, and always the same. */
static void note(const double *results, int count) {
    for (int i = 0; i < count; ++i) {
        first = known ? first : results[i];
        known = 1;
        EXPECT(memcmp(&first, &results[i], sizeof first) == 0);
    }
}

static void add_up(int count) {
    int *counts = calloc((size_t)size, sizeof *counts);
    MPI_Allreduce(input, output, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, count);
    for (int root = 0; root < size; ++root) {
        MPI_Reduce(input, output, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
        note(output, rank == root ? count : 0);
    }
    for (int i = 0; i < size; ++i)
        counts[i] = i == 0 ? count - count / size * (size - 1) : count / size;
    MPI_Reduce_scatter(input, output, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, counts[rank]);
    MPI_Reduce_scatter_block(input, output, count / size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, count / size);
    free(counts);
}

int main(int argc, char **argv) {
    static const int lengths[] = {1, 7, 100, 1000, LONGEST};
    uint64_t bits, least, most;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < LONGEST; ++i)
        input[i] = operand(rank);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i)
        add_up(lengths[i]);
    memcpy(&bits, &first, sizeof bits);
    PMPI_Allreduce(&bits, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    PMPI_Allreduce(&bits, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(least == most);
    return finish();
}
