/*
 * The time of a message (Faraj 2006, Tables 4.6 and 4.7): half of the time in which a message of
 * some bytes goes from rank 0 to a rank of another host and back; of the lowest rank if all are on
 * one host. Prints JSON: for each size in bytes, the median of the repetitions in seconds.
 *
 *   exchange SIZE…
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { REPETITIONS = 101, LEAST = 5, WARM_UP = 3, TAG = 3, HOST = 64, SECONDS = 1 };

static int compare(const void *a, const void *b) {
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static void exchange(char *data, int bytes, int other, int first) {
    if (first)
        MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first)
        MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

/* Fewer repetitions of long messages; rank 0 decides from the last of the warm-up. */
static int repetitions(double seconds, int other, int first) {
    int count = seconds * REPETITIONS < SECONDS ? REPETITIONS : (int)(SECONDS / seconds);
    count = count < LEAST ? LEAST : count;
    if (first)
        MPI_Send(&count, 1, MPI_INT, other, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(&count, 1, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return count;
}

static double median_time(char *data, int bytes, int other, int first) {
    double seconds[REPETITIONS] = {0};
    for (int i = 0; i < WARM_UP; ++i) {
        const double start = MPI_Wtime();
        exchange(data, bytes, other, first);
        seconds[0] = MPI_Wtime() - start;
    }
    const int count = repetitions(seconds[0], other, first);
    for (int i = 0; i < count; ++i) {
        const double start = MPI_Wtime();
        exchange(data, bytes, other, first);
        seconds[i] = (MPI_Wtime() - start) / 2;
    }
    qsort(seconds, (size_t)count, sizeof seconds[0], compare);
    return seconds[count / 2];
}

/* The lowest rank whose host is not rank 0's; else rank 1. */
static int find_partner(int ranks, char *host) {
    char own[HOST] = "", *hosts = calloc((size_t)ranks, HOST);
    int partner = 1;
    gethostname(own, HOST - 1);
    MPI_Allgather(own, HOST, MPI_BYTE, hosts, HOST, MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = ranks - 1; rank > 0; --rank)
        if (strncmp(hosts, hosts + (size_t)rank * HOST, HOST) != 0)
            partner = rank;
    memcpy(host, hosts + (size_t)partner * HOST, HOST);
    const int apart = strncmp(hosts, host, HOST) != 0;
    free(hosts);
    return apart ? partner : -partner;
}

int main(int argc, char **argv) {
    int rank, ranks;
    char host[HOST];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        fprintf(stderr, "exchange: two ranks are needed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int found = find_partner(ranks, host), partner = abs(found);
    if (rank == 0)
        printf("{\"hosts\": %d, \"messages\": [", found > 0 ? 2 : 1);
    for (int i = 1; i < argc; ++i) {
        const int bytes = atoi(argv[i]);
        char *data = calloc((size_t)bytes + 1, 1);
        if (data == NULL)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 || rank == partner) {
            const double seconds = median_time(data, bytes, rank == 0 ? partner : 0, rank == 0);
            if (rank == 0)
                printf("%s[%d, %.9f]", i > 1 ? ", " : "", bytes, seconds);
        }
        free(data);
    }
    if (rank == 0)
        printf("]}\n");
    MPI_Finalize();
    return EXIT_SUCCESS;
}
