/*
 * Frames, as of a camera, that process 0 reads: a bcast gives each to all, every process adds up
 * its share of it, and an allreduce of one number adds up the shares.
 *
 *   frames [POINTS [FRAMES]]     of each frame, and how many; unless told 4096, 60
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

/* Whole numbers, so that sums are exact. */
static double value(int frame, int point) {
    return (frame * 31 + point * 7) % 101;
}

/* Process 0 reads a frame; all others have nothing of the one before. */
static void read_frame(double *points, int count, int frame, int rank) {
    for (int i = 0; i < count; ++i)
        points[i] = rank == 0 ? value(frame, i) : -1;
}

/* The sum of each `step`-th point from `first` on. */
static double share(const double *points, int count, int first, int step) {
    double sum = 0;
    for (int i = first; i < count; i += step)
        sum += points[i];
    return sum;
}

static double expected(int frame, int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i)
        sum += value(frame, i);
    return sum;
}

int main(int argc, char **argv) {
    const int count = argc > 1 ? atoi(argv[1]) : 4096, frames = argc > 2 ? atoi(argv[2]) : 60;
    int rank, size, right = 1, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *points = calloc((size_t)count, sizeof *points);
    if (points == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const double begun = MPI_Wtime();
    for (int frame = 0; frame < frames; ++frame) {
        read_frame(points, count, frame, rank);
        MPI_Bcast(points, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        const double own = share(points, count, rank, size);
        double sum;
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        right &= sum == expected(frame, count);
    }
    const double seconds = MPI_Wtime() - begun;
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d frames of %d points, %d processes, %.6f s\n", all ? "right" : "wrong",
               frames, count, size, seconds);
    free(points);
    MPI_Finalize();
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
