/*
 * The micro-benchmark of Faraj 2006, Fig. 4.16: all processes compute the same, then exchange
 * blocks. Prints what both take.
 *
 *   work [CALLS [MILLISECONDS [BYTES]]]       unless told 100 calls, 10 ms, 65536 bytes
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { LENGTH = 1001 };

static double a[LENGTH + 1], b[LENGTH + 1];

static void compute(long rounds) {
    for (long round = 0; round < rounds; ++round)
        for (int k = 1; k < LENGTH - 1; ++k)
            a[k] = b[k + 1] - a[k - 1] * 2e-9;
}

/* Rounds of a computation that takes so many milliseconds on rank 0: all compute the same. */
static long rounds_of(double milliseconds) {
    long rounds = 1000;
    const double start = MPI_Wtime();
    compute(rounds);
    rounds = (long)((double)rounds * milliseconds * 1e-3 / (MPI_Wtime() - start + 1e-9)) + 1;
    MPI_Bcast(&rounds, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return rounds;
}

int main(int argc, char **argv) {
    const int calls = argc > 1 ? atoi(argv[1]) : 100;
    const double milliseconds = argc > 2 ? atof(argv[2]) : 10;
    const int bytes = argc > 3 ? atoi(argv[3]) : 65536;
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *to = malloc((size_t)size * (size_t)bytes + 1);
    char *from = calloc((size_t)size * (size_t)bytes + 1, 1);
    double computed = 0, spent = 0;
    if (to == NULL || from == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < (size_t)size * (size_t)bytes; ++i)
        to[i] = (char)(rank + 1);
    for (int k = 0; k <= LENGTH; ++k)
        b[k] = k;
    const long rounds = rounds_of(milliseconds);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int call = 0; call < calls; ++call) {
        const double begun = MPI_Wtime();
        compute(rounds);
        const double arrived = MPI_Wtime();
        MPI_Alltoall(to, bytes, MPI_BYTE, from, bytes, MPI_BYTE, MPI_COMM_WORLD);
        spent += MPI_Wtime() - arrived;
        computed += arrived - begun;
    }
    for (int other = 0; other < size && bytes > 0; ++other)
        wrong |= from[(size_t)other * (size_t)bytes] != (char)(other + 1);
    double own[2] = {computed / calls, spent / calls}, all[2];
    MPI_Reduce(own, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d calls; computation %.3f ms, alltoall %.3f ms\n", wrong ? "wrong" : "right",
               calls, all[0] / size * 1e3, all[1] / size * 1e3);
    free(to);
    free(from);
    MPI_Finalize();
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
