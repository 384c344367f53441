/*
 * Calls whose events are kept: COLLECTIVE CALLS BYTES [RANK MICROSECONDS [ROOT]]; the rank comes
 * late, and -1 is none. Or `communicators NUMBER`: an allreduce on each, one after the other. Or
 * `many SEED`: receives that are under way together; prints how many. Or `unkept`: such receives in
 * a call of which no events are kept; prints how many have ended. Or `cost`: prints how many
 * nanoseconds these things take, the least of many times:
 *
 *   event    an event
 *   arrival  one of an earlier time, as arrivals in shared memory are
 *   message  one of a message, with the table of receives; the mean of a send and a receive
 *   call     to note a call, or to count it where LIBCOLL_EVENTS_EACH leaves it out
 *   clock    a reading of the clock that events are dated with
 */
#include <unistd.h>

#ifndef COLL_TRACED
#define COLL_TRACED
#endif
#define COLL_UNTRACED
#define MESSAGES_UNTRACED
#include "dispatch.h"
#include "messages.h"

#include "program.h"

enum { UNDER_WAY = 200, ROUNDS = 30, KEPT = 1 << 8 };

enum { EVENTS = 1 << 16, REPETITIONS = 200, MESSAGES = 2000, READINGS = 1 << 12, CALLS = 1 << 12 };

/* Contributors whose arrivals are told in the reverse of their order. */
enum { ARRIVALS = 4 };

enum { OF_EVENT, OF_ARRIVAL, OF_MESSAGE, OF_TRACED_MESSAGE, OF_CALL, OF_TRACED_CALL, OF_CLOCK };

/*
 * A communicator as a routine finds it, but with one rank: nothing is left of a call but what goes
 * on around the routine.
 */
static struct coll_comm alone;

static int allreduce_one(int run(const struct coll_routine *routine, const struct coll_call *call,
                                 struct coll_comm *comm,
                                 const struct coll_parameters *parameters)) {
    static int in = 1, out;
    static const struct coll_routine *ring;
    for (int i = 0; ring == NULL && i < coll_routine_count; ++i)
        if (coll_routines[i].collective == COLL_ALLREDUCE &&
            strcmp(coll_routines[i].name, "ring") == 0)
            ring = &coll_routines[i];
    struct coll_call call = {.collective = COLL_ALLREDUCE,
                             .comm = MPI_COMM_WORLD,
                             .sendbuf = &in,
                             .recvbuf = &out,
                             .recv_count = 1,
                             .recv_type = MPI_INT,
                             .op = MPI_SUM,
                             .bytes = sizeof in};
    return run(ring, &call, &alone, &ring->defaults);
}

/* A message to oneself. */
static void message(int traced) {
    MPI_Request requests[2];
    int out = 1, in = 0;
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

/* Do so many times what costs something; in every way, an event for each of them. */
static void do_often(int what, int times) {
    for (int k = 0; k < times && what == OF_EVENT; ++k)
        coll_event(COLL_EVENT_SENT, k, what);
    for (int k = 0; k < times && what == OF_ARRIVAL; k += ARRIVALS) {
        const int64_t time = clocks_of_system();
        for (int i = 0; i < ARRIVALS; ++i)
            coll_event_at(COLL_EVENT_NODE_IN, i, what, time - i);
    }
    for (int k = 0; k < times && (what == OF_MESSAGE || what == OF_TRACED_MESSAGE); ++k)
        message(what == OF_TRACED_MESSAGE);
    for (int k = 0; k < times && (what == OF_CALL || what == OF_TRACED_CALL); ++k)
        allreduce_one(what == OF_CALL ? coll_run : coll_traced_run);
    for (int k = 0; k < times && what == OF_CLOCK; ++k)
        clocks_of_system();
}

/* Nanoseconds of each of these things, the least of all repetitions; one after the other. */
static void find_costs(int first, int last, double *best) {
    static const int times[] = {EVENTS, EVENTS, MESSAGES, MESSAGES, CALLS, CALLS, READINGS};
    for (int what = first; what <= last; ++what)
        best[what] = 1e9;
    for (int i = 0; i < REPETITIONS; ++i)
        for (int what = first; what <= last; ++what) {
            const double start = PMPI_Wtime();
            do_often(what, times[what]);
            const double took = (PMPI_Wtime() - start) / times[what] * 1e9;
            best[what] = took < best[what] ? took : best[what];
        }
}

/* Calls come first: they are kept, or counted, where no other call is under way. */
static void print_cost(void) {
    double best[OF_CLOCK + 1];
    struct events_call call = {.first = 0};
    struct coll_events memory = {.entries = malloc(EVENTS * sizeof *memory.entries),
                                 .mask = EVENTS - 1,
                                 .calls = &call,
                                 .call_count = 1};
    memset(memory.entries, 1, EVENTS * sizeof *memory.entries);
    EXPECT(allreduce_one(coll_run) == MPI_SUCCESS);
    find_costs(OF_CALL, OF_CLOCK, best);
    coll_events_now = &memory;
    find_costs(OF_EVENT, OF_TRACED_MESSAGE, best);
    coll_events_now = NULL;
    EXPECT(memory.count == (uint64_t)REPETITIONS * (2 * EVENTS + 2 * MESSAGES));
    free(memory.entries);
    printf("event %.1f\narrival %.1f\nmessage %.1f\ncall %.1f\nclock %.1f\n", best[OF_EVENT],
           best[OF_ARRIVAL], (best[OF_TRACED_MESSAGE] - best[OF_MESSAGE]) / 2,
           best[OF_TRACED_CALL] - best[OF_CALL], best[OF_CLOCK]);
}

/* On rank 0 of two, as a communicator of one rank is native; the other one leaves the processor. */
static void find_cost(void) {
    struct coll_comm *cc;
    int rank, size, done = 0;
    MPI_Request told;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size == 2 && coll_comm_get(MPI_COMM_WORLD, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(MPI_COMM_WORLD, cc) == MPI_SUCCESS && cc->kind != COLL_KIND_NATIVE);
    alone = *cc;
    alone.size = 1;
    if (rank == 0) {
        print_cost();
        PMPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
        return;
    }
    PMPI_Irecv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, &told);
    while (!done) {
        usleep(10000);
        PMPI_Test(&told, &done, MPI_STATUS_IGNORE);
    }
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

/* Many receives from oneself, in a call of which no events are kept, end in all ways. */
static void receive_unkept(void) {
    MPI_Request requests[2 * UNDER_WAY];
    MPI_Status statuses[2 * UNDER_WAY];
    int in[UNDER_WAY], out = 1, which = -1, done = 0, sum = 0;
    for (int i = 0; i < UNDER_WAY; ++i) {
        coll_traced_irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
        requests[UNDER_WAY + i] = MPI_REQUEST_NULL;
    }
    for (int i = UNDER_WAY - 1; i >= 0; --i) {
        coll_traced_isend(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[UNDER_WAY + i]);
        if (i == UNDER_WAY - 1)
            coll_traced_waitany(UNDER_WAY, requests, &which, statuses);
        while (i == UNDER_WAY - 2 && !done)
            coll_traced_testany(UNDER_WAY, requests, &which, &done, statuses);
        EXPECT(which >= UNDER_WAY - 2);
    }
    coll_traced_waitall(2 * UNDER_WAY, requests, statuses);
    for (int i = 0; i < UNDER_WAY; ++i)
        sum += in[i];
    printf("%d\n", sum);
}

/* On one communicator after the other: with a call of the library, and then freed. */
static void use_communicators(int number) {
    for (int i = 0; i < number; ++i) {
        int in = 1, out = 0, size;
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_size(comm, &size);
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
        EXPECT(out == size);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (strcmp(argv[1], "cost") == 0) {
        find_cost();
        return finish();
    }
    if (strcmp(argv[1], "communicators") == 0) {
        use_communicators(atoi(argv[2]));
        return finish();
    }
    if (strcmp(argv[1], "unkept") == 0) {
        receive_unkept();
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
