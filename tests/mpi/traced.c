/*
 * Calls whose events are kept: COLLECTIVE CALLS BYTES [RANK MICROSECONDS [ROOT]]; the rank comes
 * late, and -1 is none.
 * Or `cost`: prints what an event takes, what a message takes more with its events, and what a
 * reading of the clock takes; nanoseconds. Or `many SEED`: receives that are under way together;
 * prints how many.
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

enum { UNDER_WAY = 200, ROUNDS = 30, KEPT = 1 << 8 };

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

/* Of message i for any rank. */
static int tag_of(int i, int round) {
    return (7 * i + round) % 5;
}

/* Receives of a call, and what has come of them. */
struct receives {
    struct coll_events *memory;
    MPI_Request requests[UNDER_WAY];
    int in[UNDER_WAY];
    int seen[UNDER_WAY];
    int size, round;
    uint64_t ended;
};

/* The next event is that of receive k, with the peer and the tag of the message that it got. */
static void check_ended(struct receives *all, int k) {
    const struct events_entry *event = &all->memory->entries[all->ended++ & all->memory->mask];
    const int message = all->in[k];
    EXPECT(event->a == message % all->size);
    EXPECT(event->what == (COLL_EVENT_RECEIVED | (uint32_t)tag_of(message, all->round) << 8));
    ++all->seen[message];
}

/* Let one receive end, or all that are left, in one of the ways that routines have. */
static void end_some(struct receives *all, unsigned *state) {
    MPI_Status statuses[UNDER_WAY];
    int k = (int)(next_random(state) % UNDER_WAY), done = 0, left[UNDER_WAY];
    const unsigned way = next_random(state) % 64;
    while (all->requests[k] == MPI_REQUEST_NULL)
        k = (k + 1) % UNDER_WAY;
    if (way == 0 && all->ended > UNDER_WAY / 2) {
        for (int i = 0; i < UNDER_WAY; ++i)
            left[i] = all->requests[i] != MPI_REQUEST_NULL;
        coll_traced_waitall(UNDER_WAY, all->requests, statuses);
        for (int i = 0; i < UNDER_WAY; ++i)
            if (left[i])
                check_ended(all, i);
        return;
    }
    if (way % 4 == 0)
        coll_traced_waitany(UNDER_WAY, all->requests, &k, statuses);
    while (way % 4 == 1 && !done)
        coll_traced_testany(UNDER_WAY, all->requests, &k, &done, statuses);
    while (way % 4 == 2 && !done)
        coll_traced_test(&all->requests[k], &done, statuses);
    if (way % 4 == 3)
        coll_traced_wait(&all->requests[k], statuses);
    check_ended(all, k);
    EXPECT(all->ended == all->memory->count);
}

/*
 * In each call, many receives are under way together and end in any order: each is one event. In
 * every third call they take a message of any rank with any tag.
 */
static void receive_many(unsigned seed) {
    static struct coll_events memory;
    static struct events_entry entries[KEPT];
    static struct receives all;
    MPI_Request sends[UNDER_WAY + PEERS_MOST];
    int rank, out[UNDER_WAY];
    unsigned state;
    memory.entries = entries;
    memory.mask = KEPT - 1;
    all.memory = &memory;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &all.size);
    state = seed + 977U * (unsigned)rank;
    for (all.round = 0; all.round < ROUNDS; ++all.round) {
        const int any = all.round % 3 == 2;
        int sent = 0;
        memset(all.seen, 0, sizeof all.seen);
        all.ended = memory.count = 0;
        ++memory.call_count;
        coll_events_now = &memory;
        for (int i = 0; i < UNDER_WAY; ++i)
            coll_traced_irecv(&all.in[i], 1, MPI_INT, any ? MPI_ANY_SOURCE : i % all.size,
                              any ? MPI_ANY_TAG : tag_of(i, all.round), MPI_COMM_WORLD,
                              &all.requests[i]);
        for (int i = 0; i < UNDER_WAY; ++i)
            out[i] = i;
        for (int i = rank; i < UNDER_WAY; i += all.size)
            for (int to = 0; to < all.size; ++to)
                PMPI_Isend(&out[i], 1, MPI_INT, to, tag_of(i, all.round), MPI_COMM_WORLD,
                           &sends[sent++]);
        while (all.ended < UNDER_WAY)
            end_some(&all, &state);
        EXPECT(memory.count == UNDER_WAY);
        for (int i = 0; i < UNDER_WAY; ++i)
            EXPECT(all.seen[i] == 1);
        coll_events_now = NULL;
        PMPI_Waitall(sent, sends, MPI_STATUSES_IGNORE);
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d\n", ROUNDS * UNDER_WAY);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (strcmp(argv[1], "cost") == 0) {
        print_cost();
        return finish();
    }
    if (strcmp(argv[1], "many") == 0) {
        receive_many((unsigned)atoi(argv[2]));
        return finish();
    }
    const int calls = atoi(argv[2]), bytes = atoi(argv[3]);
    const int late = argc > 5 ? atoi(argv[4]) : -1, delay = argc > 5 ? atoi(argv[5]) : 0;
    const int root = argc > 6 ? atoi(argv[6]) : 0;
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
            MPI_Reduce(in, out, bytes, MPI_UNSIGNED_CHAR, MPI_MAX, root, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "bcast") == 0)
            MPI_Bcast(out, bytes, MPI_CHAR, root, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "barrier") == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        else
            MPI_Alltoall(in, bytes, MPI_CHAR, out, bytes, MPI_CHAR, MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    return finish();
}
