/*
 * A Fourier transform in two dimensions, as FT of the NAS benchmarks does it in three: every rank
 * has some rows, transforms them, and an alltoall transposes the matrix. Forth and back must give
 * the wave that it began with, and the transform of the wave is a single point.
 *
 *   fourier [EDGE [STEPS]]       EDGE: a power of two that the ranks divide; unless told 256, 5
 */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "line_transform.h"

static int rank, size;

/* Rows become columns: a block for each rank is packed, exchanged, and turned. */
static void transpose(double complex *rows, double complex *other, int edge) {
    const int own = edge / size;
    for (int to = 0; to < size; ++to)
        for (int i = 0; i < own; ++i)
            for (int j = 0; j < own; ++j)
                other[(to * own + j) * own + i] = rows[i * edge + to * own + j];
    MPI_Alltoall(other, own * own, MPI_C_DOUBLE_COMPLEX, rows, own * own, MPI_C_DOUBLE_COMPLEX,
                 MPI_COMM_WORLD);
    for (int from = 0; from < size; ++from)
        for (int j = 0; j < own; ++j)
            for (int i = 0; i < own; ++i)
                other[j * edge + from * own + i] = rows[(from * own + j) * own + i];
    for (int i = 0; i < own * edge; ++i)
        rows[i] = other[i];
}

static void transform_all(double complex *rows, double complex *other, int edge, int sign) {
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < edge / size; ++i)
            transform(rows + (size_t)i * (size_t)edge, edge, sign);
        transpose(rows, other, edge);
    }
}

static double complex wave(int row, int column, int edge) {
    const double angle = 2 * acos(-1) * (3.0 * row + 5.0 * column) / edge;
    return cos(angle) + I * sin(angle);
}

/* The greatest distance from what is expected on this rank: the wave, or its single point. */
static double distance(const double complex *rows, int edge, int transformed) {
    double most = 0;
    const int own = edge / size;
    for (int i = 0; i < own; ++i)
        for (int j = 0; j < edge; ++j) {
            const int row = rank * own + i;
            const double point = row == 3 && j == 5 ? (double)edge * edge : 0;
            const double complex wanted = transformed ? point : wave(row, j, edge);
            const double off = cabs(rows[i * edge + j] - wanted);
            most = off > most ? off : most;
        }
    return most;
}

int main(int argc, char **argv) {
    const int edge = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 5;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (edge < 8 || (edge & (edge - 1)) != 0 || edge % size != 0) {
        if (rank == 0)
            fprintf(stderr, "fourier: a power of two that %d ranks divide is needed\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const size_t cells = (size_t)edge * (size_t)(edge / size);
    double complex *rows = malloc(cells * sizeof *rows), *other = malloc(cells * sizeof *other);
    if (rows == NULL || other == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < cells; ++i)
        rows[i] =
            wave(rank * (edge / size) + (int)(i / (size_t)edge), (int)(i % (size_t)edge), edge);
    double errors[2] = {0, 0}, most[2] = {0, 0};
    const double begun = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        transform_all(rows, other, edge, -1);
        errors[0] = fmax(errors[0], distance(rows, edge, 1) / edge / edge);
        transform_all(rows, other, edge, 1);
        for (size_t i = 0; i < cells; ++i)
            rows[i] /= (double)edge * edge;
        errors[1] = fmax(errors[1], distance(rows, edge, 0));
        MPI_Allreduce(errors, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    const double seconds = MPI_Wtime() - begun;
    const int wrong = steps > 0 && (most[0] > 1e-9 || most[1] > 1e-9);
    if (rank == 0)
        printf("%s: %d transforms of %d x %d, greatest errors %.1e and %.1e, %.6f s\n",
               wrong ? "wrong" : "right", 2 * steps, edge, edge, most[0], most[1], seconds);
    free(rows);
    free(other);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
