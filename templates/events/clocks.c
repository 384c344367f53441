/*
 * Clocks. Processes of one kernel share a clock, also in containers and in the lab. Of all others,
 * the lowest rank exchanges messages with rank 0 (Cristian 1989): the clock of the other end was
 * read at some time between sending and receiving, so half of the shortest exchange is the greatest
 * error. Recordings compare clocks at their beginning and at their end. What the clocks do in
 * between follows from the recorded calls, without a message: see docs/recording.md.
 */
#include "clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXCHANGES = 40, TAG = 1 };

/* Return an MPI error code to the caller at once. */
#define CLOCKS_TRY(expression)                                                                     \
    do {                                                                                           \
        const int clocks_error_ = (expression);                                                    \
        if (clocks_error_ != MPI_SUCCESS)                                                          \
            return clocks_error_;                                                                  \
    } while (0)

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
static int ask(int other, MPI_Comm comm, int exchanges, int64_t now(void),
               struct clocks_sample *best) {
    *best = (struct clocks_sample){.error = INT64_MAX};
    for (int i = 0; i < exchanges; ++i) {
        int64_t theirs = 0;
        const int64_t start = now();
        CLOCKS_TRY(PMPI_Send(NULL, 0, MPI_INT64_T, other, TAG, comm));
        CLOCKS_TRY(PMPI_Recv(&theirs, 1, MPI_INT64_T, other, TAG, comm, MPI_STATUS_IGNORE));
        const int64_t end = now(), error = (end - start) / 2 + 1;
        if (error < best->error)
            *best = (struct clocks_sample){theirs, theirs - start - (end - start) / 2, error};
    }
    return MPI_SUCCESS;
}

static int answer(MPI_Comm comm, int exchanges, int64_t now(void)) {
    for (int i = 0; i < exchanges; ++i) {
        CLOCKS_TRY(PMPI_Recv(NULL, 0, MPI_INT64_T, 0, TAG, comm, MPI_STATUS_IGNORE));
        const int64_t shown = now();
        CLOCKS_TRY(PMPI_Send(&shown, 1, MPI_INT64_T, 0, TAG, comm));
    }
    return MPI_SUCCESS;
}

static int is_same(const char *clocks, int one, int other) {
    return memcmp(clocks + (size_t)one * CLOCKS_NAME, clocks + (size_t)other * CLOCKS_NAME,
                  CLOCKS_NAME) == 0;
}

/* The lowest rank with each rank's clock. Ranks of a host mostly follow each other. */
static void find_leaders(const char *clocks, int ranks, int *leaders) {
    for (int rank = 0; rank < ranks; ++rank) {
        leaders[rank] = rank;
        if (rank > 0 && is_same(clocks, rank, rank - 1))
            leaders[rank] = leaders[rank - 1];
        else
            for (int other = 0; other < rank && leaders[rank] == rank; ++other)
                if (leaders[other] == other && is_same(clocks, rank, other))
                    leaders[rank] = other;
    }
}

int clocks_find_leaders(MPI_Comm comm, const char name[CLOCKS_NAME], int **leaders) {
    int ranks;
    CLOCKS_TRY(PMPI_Comm_size(comm, &ranks));
    char *clocks = malloc((size_t)ranks * CLOCKS_NAME);
    int error = MPI_ERR_NO_MEM;
    *leaders = malloc((size_t)ranks * sizeof **leaders);
    if (clocks != NULL && *leaders != NULL)
        error = PMPI_Allgather(name, CLOCKS_NAME, MPI_BYTE, clocks, CLOCKS_NAME, MPI_BYTE, comm);
    if (error == MPI_SUCCESS)
        find_leaders(clocks, ranks, *leaders);
    free(clocks);
    return error;
}

/* On rank 0: ask the leaders; each rank's sample is that of its leader. */
static int ask_leaders(MPI_Comm comm, const int *leaders, int exchanges, int64_t now(void),
                       struct clocks_sample *all) {
    int ranks;
    CLOCKS_TRY(PMPI_Comm_size(comm, &ranks));
    for (int other = 1; other < ranks; ++other)
        if (leaders[other] == other)
            CLOCKS_TRY(ask(other, comm, exchanges, now, &all[other]));
        else
            all[other] = all[leaders[other]];
    return PMPI_Scatter(all, sizeof *all, MPI_BYTE, MPI_IN_PLACE, sizeof *all, MPI_BYTE, 0, comm);
}

int clocks_sample(MPI_Comm comm, const int *leaders, int exchanges, int64_t now(void),
                  struct clocks_sample *own) {
    int rank, ranks;
    CLOCKS_TRY(PMPI_Comm_rank(comm, &rank));
    CLOCKS_TRY(PMPI_Comm_size(comm, &ranks));
    *own = (struct clocks_sample){0};
    if (rank == 0) {
        struct clocks_sample *all = calloc((size_t)ranks, sizeof *all);
        const int error =
            all == NULL ? MPI_ERR_NO_MEM : ask_leaders(comm, leaders, exchanges, now, all);
        free(all);
        return error;
    }
    if (leaders[rank] == rank)
        CLOCKS_TRY(answer(comm, exchanges, now));
    return PMPI_Scatter(NULL, 0, MPI_BYTE, own, sizeof *own, MPI_BYTE, 0, comm);
}

int clocks_compare(MPI_Comm comm, const char name[CLOCKS_NAME], int64_t now(void),
                   struct clocks_sample *own) {
    int rank, *leaders = NULL;
    PMPI_Comm_rank(comm, &rank);
    if (clocks_find_leaders(comm, name, &leaders) != MPI_SUCCESS ||
        clocks_sample(comm, leaders, EXCHANGES, now, own) != MPI_SUCCESS)
        PMPI_Abort(comm, 1);
    const int differs = leaders[rank] != 0;
    free(leaders);
    return differs;
}
