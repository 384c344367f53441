/*
 * Heat in a rod between two ends of fixed heat: every rank has a piece, neighbours exchange their
 * ends, and an allreduce tells in every step how much still changes. In the end the heat falls
 * evenly from one end to the other.
 *
 *   stencil [EACH [MOST]]        cells of each rank, and the most steps; unless told 4, 20000
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

int main(int argc, char **argv) {
    const int each = argc > 1 ? atoi(argv[1]) : 4, most = argc > 2 ? atoi(argv[2]) : 20000;
    const double least = 1e-9;
    int rank, size, step = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    const int after = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    double *heat = calloc((size_t)each + 2, sizeof *heat);
    double *next = calloc((size_t)each + 2, sizeof *next);
    if (heat == NULL || next == NULL || each < 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    double change = 1;
    while (change > least && step < most) {
        double own = 0;
        if (rank == 0)
            heat[0] = 1;
        MPI_Sendrecv(heat + each, 1, MPI_DOUBLE, after, 1, heat, 1, MPI_DOUBLE, before, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(heat + 1, 1, MPI_DOUBLE, before, 2, heat + each + 1, 1, MPI_DOUBLE, after, 2,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 1; i <= each; ++i) {
            next[i] = (heat[i - 1] + heat[i + 1]) / 2;
            own = fmax(own, fabs(next[i] - heat[i]));
        }
        for (int i = 1; i <= each; ++i)
            heat[i] = next[i];
        MPI_Allreduce(&own, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        ++step;
    }
    const int cells = each * size;
    double error = 0, greatest = 0;
    for (int i = 1; i <= each; ++i)
        error = fmax(error, fabs(heat[i] - (1 - (double)(rank * each + i) / (cells + 1))));
    MPI_Reduce(&error, &greatest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const int wrong = change <= least && greatest > least * cells * cells;
    if (rank == 0)
        printf("%s: %d cells, %d steps, error %.1e\n", wrong ? "wrong" : "right", cells, step,
               greatest);
    free(heat);
    free(next);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
