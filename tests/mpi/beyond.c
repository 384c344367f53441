/*
 * Blocks that an int counts, on ranks whose blocks together are more bytes than it counts; and
 * reductions of more than that. Two ranks.
 *
 *   beyond MIB      of a block
 */
#include "program.h"

#include "libcoll.h"

/* Every so many bytes are looked at, and the last one. */
enum { STEP = 4099 };

static int rank;

static char pattern(size_t i, int from, int to) {
    return (char)(i * 13 + (i >> 20) * 5 + (size_t)from * 101 + (size_t)to * 57);
}

/* A block of a rank for another; `to` is 0 where all get the same. */
static void fill(char *block, size_t bytes, int from, int to) {
    for (size_t i = 0; i < bytes; i += STEP)
        block[i] = pattern(i, from, to);
    block[bytes - 1] = pattern(bytes - 1, from, to);
}

static int holds(const char *block, size_t bytes, int from, int to) {
    int right = block[bytes - 1] == pattern(bytes - 1, from, to);
    for (size_t i = 0; i + 1 < bytes; i += STEP)
        right &= block[i] == pattern(i, from, to);
    return right;
}

static void allgather(char *send, char *recv, int bytes) {
    fill(send, (size_t)bytes, rank, 0);
    MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < 2; ++from)
        EXPECT(holds(recv + (size_t)from * (size_t)bytes, (size_t)bytes, from, 0));
}

static void alltoall(char *send, char *recv, int bytes) {
    for (int to = 0; to < 2; ++to)
        fill(send + (size_t)to * (size_t)bytes, (size_t)bytes, rank, to);
    MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < 2; ++from)
        EXPECT(holds(recv + (size_t)from * (size_t)bytes, (size_t)bytes, from, rank));
}

static void gather(char *send, char *recv, int bytes) {
    fill(send, (size_t)bytes, rank, 1);
    MPI_Gather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
    for (int from = 0; from < 2 && rank == 1; ++from)
        EXPECT(holds(recv + (size_t)from * (size_t)bytes, (size_t)bytes, from, 1));
}

static void scatter(char *send, char *recv, int bytes) {
    for (int to = 0; to < 2 && rank == 1; ++to)
        fill(send + (size_t)to * (size_t)bytes, (size_t)bytes, 1, to);
    MPI_Scatter(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 1, MPI_COMM_WORLD);
    EXPECT(holds(recv, (size_t)bytes, 1, rank));
}

/* Two blocks of doubles, natively. */
static void allreduce(char *send, char *recv, int bytes) {
    const int count = bytes / (int)sizeof(double) * 2;
    double *from = (void *)send, *to = (void *)recv;
    for (int i = 0; i < count; ++i)
        from[i] = i % 1000 + rank;
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; i < count; ++i)
        wrong += to[i] != 2 * (i % 1000) + 1;
    EXPECT(wrong == 0);
}

int main(int argc, char **argv) {
    static void (*const calls[])(char *, char *, int) = {allgather, alltoall, gather, scatter,
                                                         allreduce};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int bytes = (argc > 1 ? atoi(argv[1]) : 1) << 20;
    char *send = malloc(2 * (size_t)bytes), *recv = malloc(2 * (size_t)bytes);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i)
        calls[i](send, recv, bytes);
    free(send);
    free(recv);
    return finish();
}
