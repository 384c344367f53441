/*
 * FFTW's own transform over MPI, in three dimensions: what an application calls that does not know
 * which collectives it makes. `make fftw` needs FFTW with MPI (Debian: libfftw3-dev and
 * libfftw3-mpi-dev, for Open MPI); without its headers, the program only says so.
 *
 *   fftw [EDGE [STEPS [WAY [PLANNER]]]]       unless told 30, 5, out-of-place, measure
 *
 * WAY is in-place or out-of-place; PLANNER is estimate, measure or patient. FFTW transposes by an
 * alltoall only where input and output differ and the input may be destroyed. So plans out of place
 * have FFTW_DESTROY_INPUT, and leave the spectrum transposed. The blocks are uneven if the number
 * of ranks does not divide the edge.
 */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<fftw3-mpi.h>) && __has_include(<fftw3.h>)
#include <fftw3-mpi.h>

static double start_at(ptrdiff_t i) {
    return (double)(i * 7919 % 1009) / 1009;
}

static unsigned planner_of(const char *name) {
    if (strcmp(name, "estimate") == 0)
        return FFTW_ESTIMATE;
    return strcmp(name, "patient") == 0 ? FFTW_PATIENT : FFTW_MEASURE;
}

int main(int argc, char **argv) {
    const ptrdiff_t edge = argc > 1 ? atoi(argv[1]) : 30;
    const int steps = argc > 2 ? atoi(argv[2]) : 5;
    const int in_place = argc > 3 && strcmp(argv[3], "in-place") == 0;
    const unsigned flags = planner_of(argc > 4 ? argv[4] : "measure") | FFTW_DESTROY_INPUT;
    int rank;
    ptrdiff_t own, first, own_transposed, first_transposed;
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const ptrdiff_t room = fftw_mpi_local_size_3d_transposed(
        edge, edge, edge, MPI_COMM_WORLD, &own, &first, &own_transposed, &first_transposed);
    const ptrdiff_t cells = own * edge * edge;
    fftw_complex *cube = fftw_alloc_complex((size_t)room);
    fftw_complex *spectrum = in_place ? cube : fftw_alloc_complex((size_t)room);
    fftw_plan forth = fftw_mpi_plan_dft_3d(edge, edge, edge, cube, spectrum, MPI_COMM_WORLD,
                                           FFTW_FORWARD, flags | FFTW_MPI_TRANSPOSED_OUT);
    fftw_plan back = fftw_mpi_plan_dft_3d(edge, edge, edge, spectrum, cube, MPI_COMM_WORLD,
                                          FFTW_BACKWARD, flags | FFTW_MPI_TRANSPOSED_IN);
    for (ptrdiff_t i = 0; i < cells; ++i)
        cube[i] = start_at(first * edge * edge + i);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        fftw_execute(forth);
        fftw_execute(back);
        for (ptrdiff_t i = 0; i < cells; ++i)
            cube[i] /= (double)(edge * edge * edge);
    }
    const double seconds = MPI_Wtime() - begun;
    double error = 0, most = 0;
    for (ptrdiff_t i = 0; i < cells; ++i)
        error = fmax(error, cabs(cube[i] - start_at(first * edge * edge + i)));
    MPI_Allreduce(&error, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const int wrong = !(most < 1e-9);
    if (rank == 0)
        printf("%s: %d transforms of a cube of edge %d, greatest error %.1e, %.6f s\n",
               wrong ? "wrong" : "right", 2 * steps, (int)edge, most, seconds);
    fftw_destroy_plan(forth);
    fftw_destroy_plan(back);
    fftw_free(cube);
    if (!in_place)
        fftw_free(spectrum);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

#else

int main(void) {
    fprintf(stderr, "fftw: made without FFTW for MPI\n");
    return 2;
}

#endif
