/*
 * Bodies that attract each other: every rank moves its own, and an allgather tells all where all
 * are. Forces are equal and opposite, so the momentum stays what it was: zero.
 *
 *   bodies [EACH [STEPS]]        bodies of each rank, and steps; unless told 64, 50
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { AXES = 3 };

static void pull(const double *place, const double *places, int count, double *force) {
    for (int axis = 0; axis < AXES; ++axis)
        force[axis] = 0;
    for (int other = 0; other < count; ++other) {
        double apart[AXES], square = 1e-3;
        for (int axis = 0; axis < AXES; ++axis) {
            apart[axis] = places[other * AXES + axis] - place[axis];
            square += apart[axis] * apart[axis];
        }
        for (int axis = 0; axis < AXES; ++axis)
            force[axis] += apart[axis] / (square * sqrt(square));
    }
}

int main(int argc, char **argv) {
    const int each = argc > 1 ? atoi(argv[1]) : 64, steps = argc > 2 ? atoi(argv[2]) : 50;
    const double time = 1e-4;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int own = each * AXES;
    double *place = malloc((size_t)own * sizeof *place),
           *speed = calloc((size_t)own, sizeof *speed);
    double *places = malloc((size_t)own * (size_t)size * sizeof *places);
    if (place == NULL || speed == NULL || places == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    srand((unsigned)rank + 1);
    for (int i = 0; i < own; ++i)
        place[i] = (double)rand() / RAND_MAX;
    const double begun = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        MPI_Allgather(place, own, MPI_DOUBLE, places, own, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int body = 0; body < each; ++body) {
            double force[AXES];
            pull(place + body * AXES, places, each * size, force);
            for (int axis = 0; axis < AXES; ++axis)
                speed[body * AXES + axis] += time * force[axis];
        }
        for (int i = 0; i < own; ++i)
            place[i] += time * speed[i];
    }
    const double seconds = MPI_Wtime() - begun;
    double momentum[AXES + 1] = {0}, all[AXES + 1];
    for (int i = 0; i < own; ++i) {
        momentum[i % AXES] += speed[i];
        momentum[AXES] += fabs(speed[i]);
    }
    MPI_Allreduce(momentum, all, AXES + 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int wrong = steps > 0 && each * size > 1 && !(all[AXES] > 0);
    for (int axis = 0; axis < AXES; ++axis)
        wrong |= !(fabs(all[axis]) <= 1e-9 * (1 + all[AXES]));
    if (rank == 0)
        printf("%s: %d bodies, %d steps, %.6f s\n", wrong ? "wrong" : "right", each * size, steps,
               seconds);
    free(place);
    free(speed);
    free(places);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
