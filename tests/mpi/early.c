/*
 * Whom ranks send to while they learn who comes late: link with --wrap of PMPI_Isend and its like.
 *
 *   early COLLECTIVE ROOT LATE:CALLS...   calls in which LATE is late; -1: nobody; 2+5: both;
 *                                         -2: rank 0 is early, and others come the last one first
 *
 * After each part, and after the first call, rank 0 prints a line: of each rank, those it sent to.
 */
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { LATE_US = 200000, AFTER_US = 80000, IN_TURN = -2, RANKS_MOST = 16, SENT_MOST = 32 };

static struct {
    int count, to[SENT_MOST];
} sent;

static void note(int to) {
    if (to == MPI_PROC_NULL)
        return;
    EXPECT(sent.count < SENT_MOST);
    sent.to[sent.count++ % SENT_MOST] = to;
}

#define WRAPPED(name, count_type, request_parameter, request)                                      \
    int __real_##name(const void *data, count_type count, MPI_Datatype type, int to, int tag,      \
                      MPI_Comm comm request_parameter);                                            \
    int __wrap_##name(const void *data, count_type count, MPI_Datatype type, int to, int tag,      \
                      MPI_Comm comm request_parameter) {                                           \
        note(to);                                                                                  \
        return __real_##name(data, count, type, to, tag, comm request);                            \
    }
#define COMMA ,

WRAPPED(PMPI_Send, int, , )
WRAPPED(PMPI_Isend, int, COMMA MPI_Request *request, COMMA request)
#if MPI_VERSION >= 4
WRAPPED(PMPI_Isend_c, MPI_Count, COMMA MPI_Request *request, COMMA request)
#endif

static void call_once(const char *collective, int root, int number, int rank, int size) {
    const int mine = 100 * number + rank;
    int result = rank == root ? mine : -1, all[RANKS_MOST] = {0};
    sent.count = 0;
    if (strcmp(collective, "reduce") == 0) {
        MPI_Reduce(&mine, &result, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        EXPECT(rank != root || result == size * 100 * number + size * (size - 1) / 2);
    } else if (strcmp(collective, "bcast") == 0) {
        MPI_Bcast(&result, 1, MPI_INT, root, MPI_COMM_WORLD);
        EXPECT(result == 100 * number + root);
    } else if (strcmp(collective, "allreduce") == 0) {
        MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(result == size * 100 * number + size * (size - 1) / 2);
    } else {
        MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; ++i)
            EXPECT(all[i] == 100 * number + i);
    }
}

/* Whether the ranks of a bcast or reduce tell their arrivals; in other calls of it none is late. */
static int is_told(const char *collective, int number) {
    const int before = number - 1;
    return strcmp(collective, "allreduce") == 0 ||
           (before > 0 && ((before & (before - 1)) == 0 || before % 32 == 0));
}

/* "0>1,2 1> 2>5 …" */
static void print(int rank, int size) {
    static int all[RANKS_MOST][1 + SENT_MOST];
    PMPI_Gather(&sent, 1 + SENT_MOST, MPI_INT, all, 1 + SENT_MOST, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == 0; ++i) {
        printf("%s%d>", i == 0 ? "" : " ", i);
        for (int k = 0; k < all[i][0]; ++k)
            printf("%s%d", k == 0 ? "" : ",", all[i][1 + k]);
    }
    if (rank == 0)
        printf("\n");
}

int main(int argc, char **argv) {
    int rank, size, number = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int part = 3; part < argc; ++part) {
        int late = -1, second = -1, calls = 0;
        EXPECT(sscanf(argv[part], "%d:%d", &late, &calls) == 2 ||
               sscanf(argv[part], "%d+%d:%d", &late, &second, &calls) == 3);
        for (int i = 1; i <= calls; ++i) {
            ++number;
            PMPI_Barrier(MPI_COMM_WORLD);
            if ((rank == late || rank == second) && is_told(argv[1], number))
                usleep(LATE_US);
            if (late == IN_TURN)
                usleep(rank == 0 ? 0 : (size - rank) * AFTER_US);
            call_once(argv[1], atoi(argv[2]), number, rank, size);
            if (number == 1 || i == calls)
                print(rank, size);
        }
    }
    return finish();
}
