/*
 * The columns of a matrix change places: elements far apart, each between the others. What is
 * needed besides the matrix is as much memory as it has, not as much for each column.
 */
#include <sys/resource.h>

#include "program.h"

enum { ROWS = 64, WIDTH = 1024 };

static double value(int rank, int row, int column) {
    return 1e6 * rank + 1e3 * row + column / 8.0;
}

/* No process may have 1 GiB more than it has now. */
static void limit_memory(void) {
    struct rlimit limit;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    EXPECT(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = (rlim_t)pages * 4096 + (1L << 30);
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
}

int main(int argc, char **argv) {
    int rank, p;
    MPI_Datatype strided, column;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    const int all = p * WIDTH;
    double *matrix = malloc((size_t)ROWS * (size_t)all * sizeof *matrix);
    int *counts = malloc(2 * (size_t)p * sizeof *counts), *displacements = counts + p;
    for (int row = 0; row < ROWS; ++row)
        for (int i = 0; i < all; ++i)
            matrix[row * all + i] = value(rank, row, i);
    for (int i = 0; i < p; ++i) {
        counts[i] = WIDTH;
        displacements[i] = i * WIDTH;
    }
    MPI_Type_vector(ROWS, 1, all, MPI_DOUBLE, &strided);
    MPI_Type_create_resized(strided, 0, sizeof *matrix, &column);
    MPI_Type_commit(&column);
    MPI_Barrier(MPI_COMM_WORLD); /* connections take memory, too */
    limit_memory();
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, matrix, counts, displacements,
                  column, MPI_COMM_WORLD);
    int wrong = 0;
    for (int row = 0; row < ROWS; ++row)
        for (int i = 0; i < all; ++i)
            wrong += matrix[row * all + i] != value(i / WIDTH, row, rank * WIDTH + i % WIDTH);
    EXPECT(wrong == 0);
    MPI_Type_free(&column);
    MPI_Type_free(&strided);
    free(counts);
    free(matrix);
    return finish();
}
