/*
 * One rank has no memory for a situation: all ranks go on with the table of rules, and agree.
 * Linked with --wrap=calloc.
 */
#include "libcoll.h"
#include "program.h"

static int fails;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
    if (fails == 0)
        return __real_calloc(count, size);
    --fails;
    return NULL;
}

enum { FEW = 10, MOST = 1024 };

/* Ranks must agree on what serves: the routines would not understand each other. */
static void exchange(int bytes) {
    static char send[MOST * PEERS_MOST], receive[MOST * PEERS_MOST];
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(send, rank, sizeof send);
    EXPECT(MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD) ==
           MPI_SUCCESS);
    for (int i = 0; i < size * bytes; ++i)
        EXPECT(receive[i] == i / bytes);
}

/* A duplicate learns by itself. */
static void go_on_with_a_duplicate(void) {
    MPI_Comm comm;
    char byte = 0;
    int adapts = 0;
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    for (int i = 0; i < MOST; ++i) {
        EXPECT(MPI_Allreduce(MPI_IN_PLACE, &byte, 1, MPI_BYTE, MPI_BOR, comm) == MPI_SUCCESS);
        adapts |= strcmp(libcoll_latest(), libcoll_choice("allreduce", 1, comm)) != 0;
    }
    EXPECT(adapts);
    EXPECT(MPI_Comm_free(&comm) == MPI_SUCCESS);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < FEW; ++i)
        exchange(64);
    fails = rank == 1;
    exchange(128);
    EXPECT(fails == 0);
    for (int i = 0; i < FEW; ++i) {
        exchange(64);
        exchange(128);
        exchange(MOST);
        EXPECT(strcmp(libcoll_latest(), libcoll_choice("alltoall", MOST, MPI_COMM_WORLD)) == 0);
    }
    go_on_with_a_duplicate();
    return finish();
}
