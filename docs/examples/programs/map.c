/*
 * A map that workers fit to what each has seen of it, by gradient descent. Process 0 keeps the
 * record, as processes do that write files; all others are workers, with a communicator of their
 * own. An allreduce there adds up the gradients, so it is of one process less than the job has.
 *
 *   map [POINTS [STEPS]]         of the map, and steps; unless told 4096, 60
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

static double *room(int count) {
    double *memory = calloc((size_t)count, sizeof *memory);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

/* What is at a point, between -1 and 1. */
static double truth(int point) {
    return sin(0.01 * point) * cos(0.037 * point);
}

/* Each worker has seen two points of three; of a single worker, all. */
static int has_seen(int worker, int workers, int point) {
    return workers == 1 || (point + worker) % 3 != 0;
}

/* By how much the error of a point shrinks in a step, at least: by the share that has seen it. */
static double factor(int workers) {
    double most = 0;
    for (int point = 0; point < 3; ++point) {
        int unseen = 0;
        for (int worker = 0; worker < workers; ++worker)
            unseen += !has_seen(worker, workers, point);
        most = fmax(most, (double)unseen / workers);
    }
    return most;
}

/* The greatest error of all points, from this worker's map. */
static double error_of(const double *map, int points) {
    double most = 0;
    for (int i = 0; i < points; ++i)
        most = fmax(most, fabs(map[i] - truth(i)));
    return most;
}

/* One step; returns the error that all workers together had before it. */
static double descend(double *map, double *gradient, double *sum, int points, MPI_Comm workers) {
    int worker, count;
    MPI_Comm_rank(workers, &worker);
    MPI_Comm_size(workers, &count);
    gradient[points] = 0;
    for (int i = 0; i < points; ++i) {
        gradient[i] = has_seen(worker, count, i) ? map[i] - truth(i) : 0;
        gradient[points] += gradient[i] * gradient[i];
    }
    MPI_Allreduce(gradient, sum, points + 1, MPI_DOUBLE, MPI_SUM, workers);
    for (int i = 0; i < points; ++i)
        map[i] -= sum[i] / count;
    return sum[points];
}

/* A worker's part; the first one tells process 0 the error of each step. Returns what is left. */
static double work(int points, int steps, MPI_Comm workers) {
    double *map = room(points), *gradient = room(points + 1), *sum = room(points + 1);
    int worker;
    MPI_Comm_rank(workers, &worker);
    for (int step = 0; step < steps; ++step) {
        const double error = descend(map, gradient, sum, points, workers);
        if (worker == 0)
            MPI_Send(&error, 1, MPI_DOUBLE, 0, step, MPI_COMM_WORLD);
    }
    const double left = error_of(map, points);
    free(map);
    free(gradient);
    free(sum);
    return left;
}

/* Process 0: whether no step made the error greater. */
static int keep_record(int steps) {
    double before = INFINITY, error;
    int falls = 1;
    for (int step = 0; step < steps; ++step) {
        MPI_Recv(&error, 1, MPI_DOUBLE, 1, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        falls &= error <= before;
        before = error;
    }
    return falls;
}

int main(int argc, char **argv) {
    const int points = argc > 1 ? atoi(argv[1]) : 4096, steps = argc > 2 ? atoi(argv[2]) : 60;
    int rank, size, falls = 1;
    double left = 0, most;
    MPI_Comm workers;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2 || points < 3) {
        if (rank == 0)
            fprintf(stderr, "map: at least 2 ranks and 3 points are needed\n");
        MPI_Finalize();
        return 2;
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, rank, &workers);
    const double begun = MPI_Wtime();
    if (rank == 0)
        falls = keep_record(steps);
    else
        left = work(points, steps, workers);
    const double seconds = MPI_Wtime() - begun;
    MPI_Reduce(&left, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const int right = falls && most <= pow(factor(size - 1), steps) + 1e-9;
    if (rank == 0)
        printf("%s: %d points, %d steps of %d workers, greatest error %.1e, %.6f s\n",
               right ? "right" : "wrong", points, steps, size - 1, most, seconds);
    if (rank != 0)
        MPI_Comm_free(&workers);
    MPI_Finalize();
    return right || rank != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
