/*
 * A Fourier transform in three dimensions, as FT of the NAS benchmarks does it: every rank has some
 * planes of a cube and transforms them; an alltoall gives it whole lines of the third direction.
 * Forth and back must give the wave that it began with, and the transform of the wave is a single
 * point.
 *
 *   cube [EDGE [STEPS]]       EDGE: a power of two that the ranks divide; unless told 32, 5
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "line_transform.h"

typedef double complex number;

/* A rank has `own` planes of edge x edge numbers: cube[plane][row][column]. */
static int rank, size, edge, own;

static size_t place(int plane, int row, int column) {
    return ((size_t)plane * (size_t)edge + (size_t)row) * (size_t)edge + (size_t)column;
}

/* All lines along rows or planes: numbers that are `step` apart, gathered in `line`. */
static void transform_line(number *first, size_t step, number *line, int sign) {
    for (int i = 0; i < edge; ++i)
        line[i] = first[(size_t)i * step];
    transform(line, edge, sign);
    for (int i = 0; i < edge; ++i)
        first[(size_t)i * step] = line[i];
}

static void transform_columns(number *cube, number *line, int sign) {
    for (int plane = 0; plane < own; ++plane)
        for (int row = 0; row < edge; ++row)
            transform_line(&cube[place(plane, row, 0)], 1, line, sign);
}

static void transform_rows(number *cube, number *line, int sign) {
    for (int plane = 0; plane < own; ++plane)
        for (int column = 0; column < edge; ++column)
            transform_line(&cube[place(plane, 0, column)], (size_t)edge, line, sign);
}

/* Planes become rows and rows become planes; twice is nothing. */
static void turn(number *cube, number *other) {
    const size_t line = (size_t)edge * sizeof(number);
    const int block = own * own * edge;
    for (int to = 0, next = 0; to < size; ++to)
        for (int row = 0; row < own; ++row)
            for (int plane = 0; plane < own; ++plane, ++next)
                memcpy(&other[(size_t)next * (size_t)edge], &cube[place(plane, to * own + row, 0)],
                       line);
    MPI_Alltoall(other, block, MPI_C_DOUBLE_COMPLEX, cube, block, MPI_C_DOUBLE_COMPLEX,
                 MPI_COMM_WORLD);
    for (int from = 0, next = 0; from < size; ++from)
        for (int row = 0; row < own; ++row)
            for (int plane = 0; plane < own; ++plane, ++next)
                memcpy(&other[place(row, from * own + plane, 0)],
                       &cube[(size_t)next * (size_t)edge], line);
    memcpy(cube, other, (size_t)own * (size_t)edge * line);
}

static void transform_cube(number *cube, number *other, number *line, int sign) {
    transform_columns(cube, line, sign);
    transform_rows(cube, line, sign);
    turn(cube, other);
    transform_rows(cube, line, sign);
    turn(cube, other);
}

enum { PLANE = 2, ROW = 3, COLUMN = 5 }; /* of the wave's point */

/* The wave, at a place of this rank's planes. */
static number wave(int i, int row, int column) {
    const int periods = PLANE * (rank * own + i) + ROW * row + COLUMN * column;
    const double angle = 2 * acos(-1) * periods / edge;
    return cos(angle) + I * sin(angle);
}

/* The greatest distance from what is expected on this rank: the wave, or its single point. */
static double distance(const number *cube, int is_transformed) {
    double most = 0;
    for (int i = 0; i < own; ++i)
        for (int row = 0; row < edge; ++row)
            for (int column = 0; column < edge; ++column) {
                const int plane = rank * own + i;
                const int is_point = plane == PLANE && row == ROW && column == COLUMN;
                const number wanted =
                    is_transformed ? is_point * (double)edge * edge * edge : wave(i, row, column);
                const double off = cabs(cube[place(i, row, column)] - wanted);
                most = off > most ? off : most;
            }
    return most;
}

static void fill(number *cube) {
    for (int i = 0; i < own; ++i)
        for (int row = 0; row < edge; ++row)
            for (int column = 0; column < edge; ++column)
                cube[place(i, row, column)] = wave(i, row, column);
}

static number *room(size_t count) {
    number *memory = calloc(count, sizeof *memory);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

int main(int argc, char **argv) {
    const int steps = argc > 2 ? atoi(argv[2]) : 5;
    edge = argc > 1 ? atoi(argv[1]) : 32;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (edge < 8 || (edge & (edge - 1)) != 0 || edge % size != 0) {
        if (rank == 0)
            fprintf(stderr, "cube: a power of two from 8 on that %d ranks divide is needed\n",
                    size);
        MPI_Finalize();
        return 2;
    }
    own = edge / size;
    const size_t cells = (size_t)own * (size_t)edge * (size_t)edge;
    number *cube = room(cells), *other = room(cells), *line = room((size_t)edge);
    double errors[2] = {0, 0}, most[2] = {0, 0};
    fill(cube);
    const double begun = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        transform_cube(cube, other, line, -1);
        errors[0] = fmax(errors[0], distance(cube, 1) / (double)cells);
        transform_cube(cube, other, line, 1);
        for (size_t i = 0; i < cells; ++i)
            cube[i] /= (double)edge * edge * edge;
        errors[1] = fmax(errors[1], distance(cube, 0));
        MPI_Allreduce(errors, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    const double seconds = MPI_Wtime() - begun;
    const int wrong = steps > 0 && (most[0] > 1e-9 || most[1] > 1e-9);
    if (rank == 0)
        printf("%s: %d transforms of a cube of edge %d, greatest errors %.1e and %.1e, %.6f s\n",
               wrong ? "wrong" : "right", 2 * steps, edge, most[0], most[1], seconds);
    free(cube);
    free(other);
    free(line);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
