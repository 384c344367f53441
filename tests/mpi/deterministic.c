/*
 * With LIBCOLL_DETERMINISTIC=1 a sum of floating-point numbers has the same bits whatever the
 * length of the message, the element's place in it, the root, the reduction and the rule. Prints
 * the bits, which are to be the same in another run of as many ranks.
 */
#include <stdint.h>

#include "program.h"

/* 1 MB, and a bit more: not divisible by anything. */
enum { LONGEST = 131101, PATTERNS = 5, ROOTS = 4 };

static int rank, size;
static double input[LONGEST], output[LONGEST], sums[PATTERNS];
static int known[PATTERNS];

/* Two that all but cancel, and small ones of which each order of adding up loses others. */
static double operand(int of, int pattern) {
    const double large = 1e16 * (1 + pattern);
    if (of == 0)
        return large;
    return of == size - 1 ? 8 * (1 + pattern) - large : 1.5 + 0.1 * of + 0.01 * pattern;
}

/* Elements from the `start`-th on: those of one pattern are one number, and always the same. */
static void note(const double *results, int start, int count) {
    for (int i = 0; i < count; ++i) {
        const int pattern = (start + i) % PATTERNS;
        sums[pattern] = known[pattern] ? sums[pattern] : results[i];
        known[pattern] = 1;
        if (memcmp(&sums[pattern], &results[i], sizeof *sums) != 0) {
            ++failures;
            return;
        }
    }
}

static void reduce_to_roots(int count) {
    for (int i = 0; i < ROOTS && i < size; ++i) {
        const int root = i * (size - 1) / (ROOTS - 1);
        MPI_Reduce(input, output, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
        note(output, 0, rank == root ? count : 0);
    }
}

/* In blocks of one length, and in others. */
static void reduce_and_scatter(int count) {
    const int block = count / size, first = count - block * (size - 1);
    int *counts = calloc((size_t)size, sizeof *counts);
    for (int i = 0; i < size; ++i)
        counts[i] = i == 0 ? first : block;
    MPI_Reduce_scatter(input, output, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, rank == 0 ? 0 : first + (rank - 1) * block, counts[rank]);
    MPI_Reduce_scatter_block(input, output, block, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, rank * block, block);
    free(counts);
}

static void add_up(int count) {
    MPI_Allreduce(input, output, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, 0, count);
    memcpy(output, input, (size_t)count * sizeof *output);
    MPI_Allreduce(MPI_IN_PLACE, output, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    note(output, 0, count);
    reduce_to_roots(count);
    reduce_and_scatter(count);
}

static void compare_ranks(void) {
    for (int pattern = 0; pattern < PATTERNS; ++pattern) {
        uint64_t bits, least, most;
        memcpy(&bits, &sums[pattern], sizeof bits);
        PMPI_Allreduce(&bits, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
        PMPI_Allreduce(&bits, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        EXPECT(least == most);
        if (rank == 0)
            printf("%016llx\n", (unsigned long long)bits);
    }
}

int main(int argc, char **argv) {
    static const int lengths[] = {PATTERNS, 7, 100, 1000, 20011, LONGEST};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < LONGEST; ++i)
        input[i] = operand(rank, i % PATTERNS);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i)
        add_up(lengths[i]);
    compare_ranks();
    return finish();
}
