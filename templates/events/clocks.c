/*
 * Clocks. Processes of one kernel share a clock. Of all others, the lowest rank exchanges messages
 * with rank 0 at the beginning and at the end: the clock of the other end was read at some time
 * between sending and receiving, so half of the shortest exchange is the greatest error. What the
 * clocks do in between follows from the recorded calls, without a message: see docs/recording.md.
 */
#include "clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXCHANGES = 40, TAG = 1 };

int64_t clocks_of_system(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void clocks_identify(char name[CLOCKS_NAME], const char *host) {
    char boot[40] = "", space[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL) {
        if (fscanf(file, "%39s", boot) != 1)
            boot[0] = '\0';
        fclose(file);
    }
    const ssize_t length = readlink("/proc/self/ns/time", space, sizeof space - 1);
    memset(name, 0, CLOCKS_NAME);
    if (boot[0] == '\0')
        snprintf(name, CLOCKS_NAME, "%.40s", host);
    else
        snprintf(name, CLOCKS_NAME, "%.12s %s", boot + strlen(boot) / 2, length > 0 ? space : "");
}

/* On rank 0: how much less its clock shows than that of another rank. */
static struct clocks_sample ask(int other, MPI_Comm comm, int64_t now(void)) {
    struct clocks_sample best = {.error = INT64_MAX};
    for (int i = 0; i < EXCHANGES; ++i) {
        int64_t theirs = 0;
        const int64_t start = now();
        PMPI_Send(NULL, 0, MPI_INT64_T, other, TAG, comm);
        PMPI_Recv(&theirs, 1, MPI_INT64_T, other, TAG, comm, MPI_STATUS_IGNORE);
        const int64_t end = now(), error = (end - start) / 2 + 1;
        if (error < best.error)
            best = (struct clocks_sample){theirs, theirs - start - (end - start) / 2, error};
    }
    return best;
}

static void answer(MPI_Comm comm, int64_t now(void)) {
    for (int i = 0; i < EXCHANGES; ++i) {
        PMPI_Recv(NULL, 0, MPI_INT64_T, 0, TAG, comm, MPI_STATUS_IGNORE);
        const int64_t shown = now();
        PMPI_Send(&shown, 1, MPI_INT64_T, 0, TAG, comm);
    }
}

static int is_same(const char *clocks, int one, int other) {
    return memcmp(clocks + (size_t)one * CLOCKS_NAME, clocks + (size_t)other * CLOCKS_NAME,
                  CLOCKS_NAME) == 0;
}

/* The lowest rank with each rank's clock. */
static int *find_leaders(MPI_Comm comm, const char *name, int ranks) {
    char *clocks = malloc((size_t)ranks * CLOCKS_NAME);
    int *leaders = malloc((size_t)ranks * sizeof *leaders);
    if (clocks == NULL || leaders == NULL)
        PMPI_Abort(comm, 1);
    PMPI_Allgather(name, CLOCKS_NAME, MPI_BYTE, clocks, CLOCKS_NAME, MPI_BYTE, comm);
    for (int rank = 0; rank < ranks; ++rank) {
        /* Ranks of a host mostly follow each other. */
        leaders[rank] = rank;
        if (rank > 0 && is_same(clocks, rank, rank - 1))
            leaders[rank] = leaders[rank - 1];
        else
            for (int other = 0; other < rank && leaders[rank] == rank; ++other)
                if (leaders[other] == other && is_same(clocks, rank, other))
                    leaders[rank] = other;
    }
    free(clocks);
    return leaders;
}

int clocks_compare(MPI_Comm comm, const char name[CLOCKS_NAME], int64_t now(void),
                   struct clocks_sample *own) {
    int rank, ranks;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    int *leaders = find_leaders(comm, name, ranks);
    struct clocks_sample *all = NULL;
    if (rank == 0) {
        all = calloc((size_t)ranks, sizeof *all);
        if (all == NULL)
            PMPI_Abort(comm, 1);
        for (int other = 1; other < ranks; ++other)
            all[other] = leaders[other] == other ? ask(other, comm, now) : all[leaders[other]];
    } else if (leaders[rank] == rank) {
        answer(comm, now);
    }
    PMPI_Scatter(all, sizeof *own, MPI_BYTE, own, sizeof *own, MPI_BYTE, 0, comm);
    const int differs = leaders[rank] != 0;
    free(all);
    free(leaders);
    return differs;
}
