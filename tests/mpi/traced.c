/*
 * Calls whose events are kept: COLLECTIVE CALLS BYTES [RANK MICROSECONDS], a rank that comes late.
 * Or `cost`: prints what an event takes, what a message takes more with its events, and what a
 * reading of the clock takes; nanoseconds.
 */
#include <unistd.h>

#ifndef COLL_TRACED
#define COLL_TRACED
#endif
#define COLL_UNTRACED
#define MESSAGES_UNTRACED
#include "coll.h"
#include "messages.h"

#include "program.h"

enum { EVENTS = 1 << 16, REPETITIONS = 200, MESSAGES = 20000, READINGS = 1 << 12 };

static double of_event(void) {
    double best = 1e9;
    for (int i = 0; i < REPETITIONS; ++i) {
        const double start = PMPI_Wtime();
        for (int k = 0; k < EVENTS; ++k)
            coll_event(COLL_EVENT_SENT, k, i);
        const double took = (PMPI_Wtime() - start) / EVENTS * 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static double of_clock(void) {
    double best = 1e9;
    for (int i = 0; i < REPETITIONS; ++i) {
        const double start = PMPI_Wtime();
        for (int k = 0; k < READINGS; ++k)
            PMPI_Wtime();
        const double took = (PMPI_Wtime() - start) / READINGS * 1e9;
        best = took < best ? took : best;
    }
    return best;
}

/* Nanoseconds of a message to oneself. */
static double of_message(int traced) {
    MPI_Request requests[2];
    double best = 1e9;
    int out = 1, in = 0;
    for (int i = 0; i < 10; ++i) {
        const double start = PMPI_Wtime();
        for (int k = 0; k < MESSAGES; ++k) {
            if (traced) {
                coll_traced_irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
                coll_traced_isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
                coll_traced_wait(&requests[0], MPI_STATUS_IGNORE);
                coll_traced_wait(&requests[1], MPI_STATUS_IGNORE);
            } else {
                PMPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
                PMPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
                PMPI_Wait(&requests[0], MPI_STATUS_IGNORE);
                PMPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            }
        }
        const double took = (PMPI_Wtime() - start) / MESSAGES * 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static void print_cost(void) {
    struct coll_events memory = {
        .entries = malloc(EVENTS * sizeof *memory.entries), .mask = EVENTS - 1, .call_count = 1};
    memset(memory.entries, 1, EVENTS * sizeof *memory.entries);
    coll_events_now = &memory;
    const double event = of_event(), untraced = of_message(0), traced = of_message(1);
    coll_events_now = NULL;
    EXPECT(memory.count == (uint64_t)EVENTS * REPETITIONS + 20 * MESSAGES);
    free(memory.entries);
    printf("%.1f %.1f %.1f\n", event, (traced - untraced) / 2, of_clock());
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc == 2) {
        print_cost();
        return finish();
    }
    const int calls = atoi(argv[2]), bytes = atoi(argv[3]);
    const int late = argc > 5 ? atoi(argv[4]) : -1, delay = argc > 5 ? atoi(argv[5]) : 0;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *in = calloc((size_t)bytes + 1, (size_t)size),
         *out = calloc((size_t)bytes + 1, (size_t)size);
    for (int i = 0; i < calls; ++i) {
        PMPI_Barrier(MPI_COMM_WORLD);
        if (rank == late)
            usleep((useconds_t)delay);
        if (strcmp(argv[1], "allreduce") == 0)
            MPI_Allreduce(in, out, bytes, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "reduce") == 0)
            MPI_Reduce(in, out, bytes, MPI_UNSIGNED_CHAR, MPI_MAX, 0, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "bcast") == 0)
            MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "barrier") == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        else
            MPI_Alltoall(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    return finish();
}
