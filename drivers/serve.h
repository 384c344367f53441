/* Shared by sessions: rank 0 reads commands from standard input, and answers in JSON. */
#ifndef SERVE_H
#define SERVE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "json_text.h"

/* The longest command: room for about as many routines as it may name, with parameters. */
enum { LINE = 1 << 16 };

static MPI_Comm control; /* commands and results, apart from what is timed */
static int world_rank, world_size;

static inline void complain(const char *what, const char *about) {
    if (world_rank == 0)
        printf("{\"error\": \"%s: %s\"}\n", what, about);
}

/* The MPI library's name and version, fit for JSON. */
static inline int describe_mpi(char *version) {
    int length;
    const int error = PMPI_Get_library_version(version, &length);
    make_fit_for_json(version);
    return error;
}

/* Read one command. A line that is too long is read to its end and ignored. */
static inline void read_command(char *line) {
    if (fgets(line, LINE, stdin) == NULL) {
        strcpy(line, "quit");
        return;
    }
    if (strchr(line, '\n') != NULL || feof(stdin))
        return;
    for (int c = 0; c != '\n' && c != EOF;)
        c = getchar();
    strcpy(line, "(too long)");
}

/* The longest pause, in ns, between two looks of a rank that sleeps. */
static const long pause_most = 100000000;

/*
 * With SESSION_SLEEPS=1, ranks sleep between commands: a session that is kept for later does not
 * take the CPUs from another one. The longer a rank has slept, the longer is its next pause.
 */
static inline int sleep_until(MPI_Request *request) {
    struct timespec pause = {.tv_nsec = 100000};
    for (;;) {
        int done;
        const int error = PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done)
            return error;
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < pause_most / 2 ? 2 * pause.tv_nsec : pause_most;
    }
}

/* Rank 0 wakes each of the others itself: of those that pass a message on, each may sleep first. */
static inline int wake(int *length) {
    if (world_rank != 0) {
        MPI_Request request;
        const int error = PMPI_Irecv(length, 1, MPI_INT, 0, 0, control, &request);
        return error != MPI_SUCCESS ? error : sleep_until(&request);
    }
    int error = MPI_SUCCESS;
    for (int rank = 1; rank < world_size && error == MPI_SUCCESS; ++rank)
        error = PMPI_Send(length, 1, MPI_INT, rank, 0, control);
    return error;
}

static inline int spread_length(int *length) {
    const char *sleeps = getenv("SESSION_SLEEPS");
    if (sleeps != NULL && strcmp(sleeps, "1") == 0)
        return wake(length);
    return PMPI_Bcast(length, 1, MPI_INT, 0, control);
}

/* Tell all ranks a command, in no more bytes than it has: the network may be slow. */
static inline int spread_command(char *line) {
    int length = (int)strlen(line) + 1;
    const int error = spread_length(&length);
    return error != MPI_SUCCESS ? error : PMPI_Bcast(line, length, MPI_CHAR, 0, control);
}

/* Rank 0 reads a command and all obey, until quit, the end of the input, or an MPI error. */
static inline int serve(int (*obey)(char *line)) {
    static char line[LINE];
    for (;;) {
        if (world_rank == 0)
            read_command(line);
        int error = spread_command(line);
        if (error != MPI_SUCCESS || strncmp(line, "quit", 4) == 0)
            return error;
        error = obey(line);
        if (error != MPI_SUCCESS)
            return error;
        if (world_rank == 0) {
            printf("{\"done\": true}\n");
            fflush(stdout);
        }
    }
}

/* Between MPI_Init and MPI_Finalize: carry out the session. An MPI error ends the job. */
static inline void run_session(int (*obey)(char *line)) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    if (serve(obey) != MPI_SUCCESS) {
        complain("MPI error", "a routine failed");
        fflush(stdout);
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    PMPI_Comm_free(&control);
}

#endif
