/*
 * Plans that go on, and end, inside blocking calls on a smaller communicator. One rank of each pair
 * comes late to these calls, but makes progress meanwhile. So the plans of the others end while
 * these wait in the blocking calls.
 */
#include <mpi.h>
#include <stdio.h>

enum { TURNS = 20, CALLS = 5, MOST = 64, LATE_US = 10000 };

/* Test a request that does not complete, for a while. */
static void make_progress(void) {
    const double end = MPI_Wtime() + 1e-6 * LATE_US;
    MPI_Request request;
    int none, is_done = 0;
    MPI_Irecv(&none, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    while (MPI_Wtime() < end)
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    MPI_Send(&is_done, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, ranks, sum = 0, wrong = 0;
    int sent[MOST], got[MOST];
    MPI_Comm pair;
    MPI_Request plan;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    for (int i = 0; i < ranks; ++i)
        sent[i] = 100 * rank + i;
    MPI_Alltoall_init(sent, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &plan);
    for (int turn = 0; turn < TURNS; ++turn) {
        MPI_Start(&plan);
        if (rank % 2 == turn % 2)
            make_progress();
        for (int call = 0; call < CALLS; ++call)
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, pair);
        MPI_Wait(&plan, MPI_STATUS_IGNORE);
        for (int i = 0; i < ranks; ++i)
            wrong += got[i] != 100 * i + rank;
    }
    MPI_Request_free(&plan);
    MPI_Comm_free(&pair);
    if (wrong > 0)
        printf("%d wrong\n", wrong);
    MPI_Finalize();
    return wrong > 0;
}
