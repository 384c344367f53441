/*
 * Clocks. Processes of one kernel share a clock. Of all others, the lowest rank exchanges messages
 * with rank 0 at the beginning and at the end: the clock of the other end was read at some time
 * between sending and receiving, so half of the shortest exchange is the greatest error. What the
 * clocks do in between follows from the recorded calls, without a message: see docs/recording.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

enum { EXCHANGES = 40, TAG = 1 };

/* For tests: a clock that is set wrong and runs wrong. */
static int64_t false_offset;
static double false_drift;

static int64_t of_system(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t recorder_now(void) {
    const int64_t now = of_system();
    if (__builtin_expect(false_offset != 0, 0))
        return now + false_offset + (int64_t)((double)now * false_drift);
    return now;
}

/* STAGEGEN_RECORD_CLOCK=SECONDS,PPM: rank r's clock is ahead by r times SECONDS and runs fast. */
void recorder_set_clock(int rank) {
    double seconds = 0, ppm = 0;
    const char *text = getenv("STAGEGEN_RECORD_CLOCK");
    if (text == NULL || sscanf(text, "%lf,%lf", &seconds, &ppm) < 1 || rank == 0)
        return;
    char *name = recorder_store->clock;
    false_drift = ppm * 1e-6 * rank;
    false_offset = (int64_t)(seconds * 1e9 * rank);
    snprintf(name + strnlen(name, RECORDER_HOST / 2), RECORDER_HOST / 2, "/%d", rank);
}

/* What processes have in common whose clocks are one: the kernel's start, and a namespace. */
void recorder_identify_clock(char *name, size_t room) {
    char boot[40] = "", space[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL) {
        if (fscanf(file, "%39s", boot) != 1)
            boot[0] = '\0';
        fclose(file);
    }
    const ssize_t length = readlink("/proc/self/ns/time", space, sizeof space - 1);
    if (boot[0] == '\0') /* nothing is known: a host has one clock */
        snprintf(name, room, "%.40s", recorder_store->host);
    else
        snprintf(name, room, "%.12s %s", boot + strlen(boot) / 2, length > 0 ? space : "");
}

/* On rank 0: how much less its clock shows than that of another rank. */
static struct recorder_sample ask(int other, MPI_Comm comm) {
    struct recorder_sample best = {.error = INT64_MAX};
    for (int i = 0; i < EXCHANGES; ++i) {
        int64_t theirs = 0;
        const int64_t start = recorder_now();
        PMPI_Send(NULL, 0, MPI_INT64_T, other, TAG, comm);
        PMPI_Recv(&theirs, 1, MPI_INT64_T, other, TAG, comm, MPI_STATUS_IGNORE);
        const int64_t end = recorder_now(), error = (end - start) / 2 + 1;
        if (error < best.error)
            best = (struct recorder_sample){theirs, theirs - start - (end - start) / 2, error};
    }
    return best;
}

static void answer(MPI_Comm comm) {
    for (int i = 0; i < EXCHANGES; ++i) {
        PMPI_Recv(NULL, 0, MPI_INT64_T, 0, TAG, comm, MPI_STATUS_IGNORE);
        const int64_t now = recorder_now();
        PMPI_Send(&now, 1, MPI_INT64_T, 0, TAG, comm);
    }
}

/* The lowest rank with each rank's clock. */
static int *find_leaders(MPI_Comm comm, int ranks) {
    char *clocks = malloc((size_t)ranks * RECORDER_HOST);
    int *leaders = malloc((size_t)ranks * sizeof *leaders);
    if (clocks == NULL || leaders == NULL)
        PMPI_Abort(comm, 1);
    PMPI_Allgather(recorder_store->clock, RECORDER_HOST, MPI_BYTE, clocks, RECORDER_HOST, MPI_BYTE,
                   comm);
    for (int rank = 0; rank < ranks; ++rank) {
        /* Ranks of a host mostly follow each other. */
        leaders[rank] = rank;
        if (rank > 0 && memcmp(clocks + (size_t)rank * RECORDER_HOST,
                               clocks + (size_t)(rank - 1) * RECORDER_HOST, RECORDER_HOST) == 0)
            leaders[rank] = leaders[rank - 1];
        else
            for (int other = 0; other < rank && leaders[rank] == rank; ++other)
                if (leaders[other] == other &&
                    memcmp(clocks + (size_t)rank * RECORDER_HOST,
                           clocks + (size_t)other * RECORDER_HOST, RECORDER_HOST) == 0)
                    leaders[rank] = other;
    }
    free(clocks);
    return leaders;
}

/* Collective: every rank keeps the sample of its clock; that of rank 0 has none. */
void recorder_compare_clocks(MPI_Comm comm) {
    const int ranks = recorder_store->ranks, rank = recorder_store->rank;
    int *leaders = find_leaders(comm, ranks);
    struct recorder_sample own, *all = NULL;
    if (rank == 0) {
        all = calloc((size_t)ranks, sizeof *all);
        if (all == NULL)
            PMPI_Abort(comm, 1);
        for (int other = 1; other < ranks; ++other)
            all[other] = leaders[other] == other ? ask(other, comm) : all[leaders[other]];
    } else if (leaders[rank] == rank) {
        answer(comm);
    }
    PMPI_Scatter(all, sizeof own, MPI_BYTE, &own, sizeof own, MPI_BYTE, 0, comm);
    uint64_t index;
    struct recorder_sample *kept = NULL;
    if (leaders[rank] != 0)
        kept = recorder_take(RECORDER_SAMPLES, 1, &index);
    if (kept != NULL)
        *kept = own;
    free(all);
    free(leaders);
}
