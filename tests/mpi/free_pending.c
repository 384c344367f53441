/*
 * A communicator on which a routine of ours has run is freed while one rank has a receive under way
 * on it. That rank goes on only when the other has freed it, too, and sent a message elsewhere.
 */
#include "program.h"

enum { ROUNDS = 3, MANY = 1 << 18 };

extern const char *libcoll_choice(const char *collective, MPI_Aint bytes, MPI_Comm comm);

static void round_of(int rank, int count) {
    static int data[MANY];
    int sum = 0, word = 0;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(strcmp(libcoll_choice("allreduce", 4, comm), "configured_tree_flat") == 0);
    for (int i = 0; i < 3; ++i) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(sum == 1);
    }
    if (rank == 0) {
        MPI_Irecv(data, count, MPI_INT, 1, 0, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT(word == 7);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(data[count - 1] == 5);
    } else {
        word = 7;
        data[count - 1] = 5;
        MPI_Send(data, count, MPI_INT, 0, 0, comm);
        MPI_Comm_free(&comm);
        MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS; ++i) {
        round_of(rank, 1);
        round_of(rank, MANY);
    }
    return finish();
}
