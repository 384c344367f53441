/*
 * Reductions of two integers per rank, with a gap between them on rank 0 only (`mixed`) or on all
 * ranks (`same`). Exit status 1 if a sum is wrong. It calls the MPI library's own functions.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 2, CALLS = 20 };

/* Integers from one number to the next, on this rank. */
static int step;

static void add_up(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count * NUMBERS; ++i)
        ((int *)inout)[i * step] += ((int *)in)[i * step];
}

int main(int argc, char **argv) {
    int rank, size, wrong = 0;
    MPI_Datatype vector, type;
    MPI_Op op;
    PMPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    step = (argc > 1 && strcmp(argv[1], "same") == 0) || rank == 0 ? 2 : 1;
    PMPI_Type_vector(NUMBERS, 1, step, MPI_INT, &vector);
    PMPI_Type_create_resized(vector, 0, NUMBERS * step * (MPI_Aint)sizeof(int), &type);
    PMPI_Type_commit(&type);
    PMPI_Op_create(add_up, 1, &op);
    for (int call = 0; call < CALLS; ++call) {
        int input[NUMBERS * 2] = {0}, sum[NUMBERS * 2] = {0};
        for (int i = 0; i < NUMBERS; ++i)
            input[i * step] = i + 1;
        PMPI_Allreduce(input, sum, 1, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < NUMBERS; ++i)
            wrong |= sum[i * step] != size * (i + 1);
    }
    PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", wrong ? "wrong" : "right");
    PMPI_Finalize();
    return wrong;
}
