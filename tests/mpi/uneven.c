/*
 * Correct calls that look different on the ranks, each the first on its communicator: what one
 * rank sees in its own arguments must not keep it from meeting the others.
 */
#include "program.h"

enum { INTS = 25 };

static int rank, size;

/* No data: a buffer or none, elements or none. Open MPI 4.1 by itself sends where elements are. */
static void nothing(MPI_Comm comm) {
#ifdef OPEN_MPI
    const int elements = 0;
#else
    const int elements = 5;
#endif
    int data = rank;
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    if (rank == 0)
        EXPECT(MPI_Bcast(NULL, 0, MPI_INT, 0, comm) == MPI_SUCCESS);
    else
        EXPECT(MPI_Bcast(&data, elements, empty, 0, comm) == MPI_SUCCESS);
    EXPECT(data == rank);
    MPI_Type_free(&empty);
}

/* No data, and on one rank more elements of none than an int can count. */
static void nothing_often(MPI_Comm comm) {
#if MPI_VERSION >= 4
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    EXPECT(MPI_Bcast_c(NULL, rank == 0 ? (MPI_Count)1 << 33 : 0, empty, 0, comm) == MPI_SUCCESS);
    MPI_Type_free(&empty);
#else
    (void)comm;
#endif
}

/* Data on all ranks but one, which has more elements of none than an int can count. */
static void nothing_often_of_one(MPI_Comm comm) {
#if MPI_VERSION >= 4
    int *data = calloc((size_t)size, sizeof *data);
    MPI_Count *counts = malloc((size_t)size * sizeof *counts);
    MPI_Aint *displacements = malloc((size_t)size * sizeof *displacements);
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int i = 0; i < size; ++i) {
        counts[i] = i > 0;
        displacements[i] = i;
    }
    EXPECT(MPI_Allgatherv_c(&rank, rank == 0 ? (MPI_Count)1 << 33 : 1, rank == 0 ? empty : MPI_INT,
                            data, counts, displacements, MPI_INT, comm) == MPI_SUCCESS);
    for (int i = 0; i < size; ++i)
        EXPECT(data[i] == i);
    MPI_Type_free(&empty);
    free(data);
    free(counts);
    free(displacements);
#else
    (void)comm;
#endif
}

static void absolute(MPI_Comm comm) {
    int data[INTS], length = INTS;
    MPI_Aint address;
    MPI_Datatype type;
    for (int i = 0; i < INTS; ++i)
        data[i] = rank == 0 ? i : -1;
    MPI_Get_address(data, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (rank == 0)
        EXPECT(MPI_Bcast(MPI_BOTTOM, 1, type, 0, comm) == MPI_SUCCESS);
    else
        EXPECT(MPI_Bcast(data, INTS, MPI_INT, 0, comm) == MPI_SUCCESS);
    for (int i = 0; i < INTS; ++i)
        EXPECT(data[i] == i);
    MPI_Type_free(&type);
}

/* One address for both sides, and the type of one of them begins after the other's data. */
static void one_address(MPI_Comm comm) {
    int *data = calloc((size_t)(1 + size) * INTS, sizeof *data);
    const int length = INTS, behind = size * INTS;
    MPI_Datatype type;
    MPI_Type_indexed(1, &length, &behind, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < INTS; ++i)
        data[behind + i] = 100 * rank + i;
    if (rank == 0)
        EXPECT(MPI_Allgather(data, 1, type, data, INTS, MPI_INT, comm) == MPI_SUCCESS);
    else
        EXPECT(MPI_Allgather(data + behind, INTS, MPI_INT, data, INTS, MPI_INT, comm) ==
               MPI_SUCCESS);
    for (int i = 0; i < behind; ++i)
        EXPECT(data[i] == 100 * (i / INTS) + i % INTS);
    MPI_Type_free(&type);
    free(data);
}

/*
 * One buffer for both sides, also at the root, whose own block is elsewhere in it. MPI forbids it,
 * but no MPI library finds fault with it, and programs get what they expect.
 */
static void one_buffer(MPI_Comm comm) {
    const int root = size - 1;
    int *data = calloc((size_t)size * INTS, sizeof *data);
    for (int i = 0; i < INTS; ++i)
        data[i] = 100 * rank + i;
    EXPECT(MPI_Gather(data, INTS, MPI_INT, data, INTS, MPI_INT, root, comm) == MPI_SUCCESS);
    for (int i = 0; i < INTS * (rank == root ? size : 1); ++i)
        EXPECT(data[i] == 100 * (rank == root ? i / INTS : rank) + i % INTS);
    EXPECT(MPI_Scatter(data, INTS, MPI_INT, data, INTS, MPI_INT, root, comm) == MPI_SUCCESS);
    for (int i = 0; i < INTS; ++i)
        EXPECT(data[i] == 100 * rank + i);
    free(data);
}

int main(int argc, char **argv) {
    static void (*const tests[])(MPI_Comm) = {nothing,  nothing_often, nothing_often_of_one,
                                              absolute, one_address,   one_buffer};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        tests[i](comm);
        for (int collective = 0; collective < COLLECTIVES; ++collective)
            EXPECT(!differs(collective, 100, 0, 1, comm));
        MPI_Comm_free(&comm);
    }
    return finish();
}
