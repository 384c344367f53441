/*
 * Calls of a library that adapts.
 *
 *   adaptive stress CALLS SEED SLEEP   random calls, communicators and call sites; ranks sleep up
 *                                      to SLEEP microseconds before some, rarely for 5 ms. Each
 *                                      result is compared with the MPI library's own, and what
 *                                      served on each rank with the other ranks, after every 16
 *                                      calls on a communicator. Half-way, the routine "turncoat"
 *                                      turns slow; it must have served before and after.
 *   adaptive same COLLECTIVE BYTES CALLS   the same call again and again, from one line
 *   adaptive alternating CALLS         an allreduce; before each, every other rank sleeps for 2 ms,
 *                                      those with even numbers and those with odd ones in turn
 *   adaptive sites CALLS               two lines take turns; in the second half, rank 1 calls from
 *                                      a third one
 *   adaptive turns CALLS               three lines take turns; prints for each how many of its
 *                                      calls the table did not serve, in the second half
 *   adaptive sequence BEFORE PERIOD TIMES
 *                                      the lines of BEFORE, then those of PERIOD so many times:
 *                                      each letter is a line
 *   adaptive astray CALLS              two lines take turns; in the first half, rank 1 calls from
 *                                      three at random
 *   adaptive leaving TIMES             two lines take turns for some calls, then rank 1 calls once
 *                                      from a third one; so many times
 *   adaptive ordered CALLS             reductions of one size; the operation of every third one
 *                                      does not commute
 *   adaptive threads CALLS             two threads, each with a communicator of its own
 *   adaptive nothing CALLS LINES       nanoseconds of a barrier that a routine serves which does
 *                                      nothing, the least of many batches; one or two lines call
 */
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "libcoll.h"
#include "program.h"

/* The library's, from tests/mpi/adaptive_templates: its routine is to sleep; calls that slept. */
/* Weak, as a library without that routine has neither. */
__attribute__((weak)) atomic_int turncoat_is_slow, turncoat_slept;

static unsigned hash_of(const char *text) {
    unsigned hash = 5381;
    for (; *text != '\0'; ++text)
        hash = hash * 33 + (unsigned char)*text;
    return hash & 0x7FFFFFFF;
}

/* Whether a number is the same on all ranks of a communicator. */
static int is_alike(int own, MPI_Comm comm) {
    int ends[2] = {own, -own}, all[2];
    PMPI_Allreduce(ends, all, 2, MPI_INT, MPI_MAX, comm);
    return all[0] == -all[1];
}

/* Whether all ranks of a communicator were served by one algorithm. */
static int agree(MPI_Comm comm) {
    return is_alike((int)hash_of(libcoll_latest()), comm);
}

/* Three lines that the same calls come from. */
static __attribute__((noinline)) int from_site(int site, int collective, int bytes, int root,
                                               unsigned seed, MPI_Comm comm) {
    if (site == 0)
        return differs(collective, bytes, root, seed, comm);
    if (site == 1)
        return differs(collective, bytes, root, seed, comm);
    return differs(collective, bytes, root, seed, comm);
}

static MPI_Comm make(unsigned number, int rank) {
    MPI_Comm comm;
    if (number % 4 == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else if (number % 4 == 1)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    else if (number % 4 == 2)
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &comm);
    return comm;
}

enum {
    COMMS = 4,
    LIFE = 701,
    SIZES = 6,
    FEWEST = 4,
    SLEEP_EVERY = 16,
    LONG_EVERY = 1000, /* a rank sleeps for as long as many calls take */
    LONG_SLEEP = 5000, /* microseconds */
    COMPARED_EVERY = 16,
    KEPT_MOST = 64 << 20,
    ENOUGH = 1000
};

/* All random numbers are alike on all ranks but those for delays. */
static void stress(int calls, unsigned seed, int most, int rank) {
    static const int bytes[SIZES] = {1, 64, 256, 300, 1000, 4000};
    MPI_Comm comms[COMMS] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    int lives[COMMS] = {0};        /* on all ranks, though some are not in them */
    unsigned history[COMMS] = {0}; /* a hash of what served, on this rank */
    unsigned calls_of[COMMS] = {0};
    unsigned state = seed, own = seed + 7919U * (unsigned)rank;
    long before = 0;
    int served = 0;
    for (int i = 0; i < calls && failures == 0; ++i) {
        const unsigned which = next_random(&state) % COMMS, line = next_random(&state) % 3;
        const int collective = (int)(next_random(&state) % COLLECTIVES);
        const int rare = next_random(&state) % 50 == 0;
        const int size =
            rare ? 2 + (int)(next_random(&state) % 2000) : bytes[next_random(&state) % SIZES];
        const unsigned root = next_random(&state), made = next_random(&state);
        int ranks;
        if (i % LIFE == LIFE - 1 && lives[which]) {
            if (comms[which] != MPI_COMM_NULL)
                MPI_Comm_free(&comms[which]);
            lives[which] = 0;
        }
        if (!lives[which]) {
            comms[which] = make(which + made % 2, rank);
            history[which] = 0;
            calls_of[which] = 0;
        }
        lives[which] = 1;
        turncoat_is_slow = i >= calls / 2;
        if (i == calls / 4)
            before = (long)mallinfo2().uordblks;
        if (comms[which] == MPI_COMM_NULL)
            continue;
        PMPI_Comm_size(comms[which], &ranks);
        if (most > 0 && next_random(&own) % SLEEP_EVERY == 0)
            usleep(next_random(&own) % LONG_EVERY == 0 ? LONG_SLEEP
                                                       : next_random(&own) % (unsigned)most);
        EXPECT(!from_site((int)((line + (unsigned)rank * rare) % 3), collective, size,
                          (int)(root % (unsigned)ranks), seed + (unsigned)i, comms[which]));
        history[which] = history[which] * 31 + hash_of(libcoll_latest());
        if (++calls_of[which] % COMPARED_EVERY == 0)
            EXPECT(is_alike((int)(history[which] & 0x7FFFFFFF), comms[which]));
        served += i < calls / 2 && strcmp(libcoll_latest(), "turncoat") == 0;
    }
    EXPECT(calls < ENOUGH || served >= FEWEST);
    EXPECT(calls < ENOUGH || turncoat_slept >= FEWEST);
    EXPECT((long)mallinfo2().uordblks - before < KEPT_MOST);
    for (int i = 0; i < COMMS; ++i)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[i]);
}

static int collective_of(const char *name) {
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        if (strcmp(collectives[collective].name, name) == 0)
            return collective;
    EXPECT(!"a collective");
    return 0;
}

static void same(const char *name, int bytes, int calls) {
    const int collective = collective_of(name);
    for (int i = 0; i < calls && failures == 0; ++i) {
        EXPECT(!differs(collective, bytes, 0, 1, MPI_COMM_WORLD));
        EXPECT(agree(MPI_COMM_WORLD));
    }
}

static void alternating(int calls, int rank) {
    int sum;
    for (int i = 0; i < calls; ++i) {
        PMPI_Barrier(MPI_COMM_WORLD);
        if (rank % 2 == i % 2)
            usleep(2000);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void sites(int calls, int rank) {
    static char send[4096], receive[4096];
    for (int i = 0; i < calls && failures == 0; ++i) {
        if (i >= calls / 2 && rank == 1) {
            MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
            EXPECT(agree(MPI_COMM_WORLD));
            MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
            EXPECT(agree(MPI_COMM_WORLD));
            continue;
        }
        MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
        EXPECT(agree(MPI_COMM_WORLD));
        MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
        EXPECT(agree(MPI_COMM_WORLD));
    }
}

static void turns(int calls, int rank) {
    static char send[4096], receive[4096];
    int others[3] = {0};
    for (int i = 0; i < 3 * calls && failures == 0; ++i) {
        const int line = i % 3;
        if (line == 0)
            MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
        else if (line == 1)
            MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
        else
            MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
        const char *table = libcoll_choice("alltoall", 64, MPI_COMM_WORLD);
        others[line] += 2 * i >= 3 * calls && strcmp(libcoll_latest(), table) != 0;
        EXPECT(agree(MPI_COMM_WORLD));
    }
    if (rank == 0)
        printf("%d %d %d\n", others[0], others[1], others[2]);
}

/* An alltoall from the line of a letter. */
static void call_from(char line) {
    static char send[4096], receive[4096];
    if (line == 'a')
        MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
    else if (line == 'b')
        MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Alltoall(send, 64, MPI_BYTE, receive, 64, MPI_BYTE, MPI_COMM_WORLD);
    EXPECT(agree(MPI_COMM_WORLD));
}

static void sequence(const char *before, const char *period, int times) {
    for (; *before != '\0'; ++before)
        call_from(*before);
    for (int i = 0; i < times; ++i)
        for (const char *line = period; *line != '\0'; ++line)
            call_from(*line);
}

static void astray(int calls, int rank) {
    unsigned own = 5;
    for (int i = 0; i < calls && failures == 0; ++i)
        call_from(rank == 1 && i < calls / 2 ? "abc"[next_random(&own) % 3] : "ab"[i % 2]);
}

enum { TURNS = 60 };

static void leaving(int times, int rank) {
    for (int i = 0; i < times; ++i) {
        for (int k = 0; k < TURNS; ++k)
            call_from("ab"[k % 2]);
        call_from(rank == 1 ? 'c' : 'a');
        call_from('b');
    }
}

enum { PAIRS = 32 };

/* Maps x -> ax + b, one after the other, modulo 2^32: associative, and the order matters. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    const unsigned *first = in;
    unsigned *second = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        second[2 * i + 1] += second[2 * i] * first[2 * i + 1];
        second[2 * i] *= first[2 * i];
    }
}

/* One reduction through the library and through PMPI: 1 if the results differ. */
static int reduces(int which, MPI_Datatype type, MPI_Op op, unsigned seed, int rank, int size) {
    static unsigned send[2 * PAIRS * PEERS_MOST], ours[2 * PAIRS * PEERS_MOST],
        theirs[2 * PAIRS * PEERS_MOST];
    unsigned state = seed + 977U * (unsigned)rank;
    const int root = (int)seed % size;
    for (int i = 0; i < 2 * PAIRS * size; ++i)
        send[i] = next_random(&state) | 1;
    memset(ours, 0, sizeof ours);
    memset(theirs, 0, sizeof theirs);
    if (which == 0) {
        MPI_Allreduce(send, ours, PAIRS, type, op, MPI_COMM_WORLD);
        PMPI_Allreduce(send, theirs, PAIRS, type, op, MPI_COMM_WORLD);
    } else if (which == 1) {
        MPI_Reduce(send, ours, PAIRS, type, op, root, MPI_COMM_WORLD);
        PMPI_Reduce(send, theirs, PAIRS, type, op, root, MPI_COMM_WORLD);
    } else {
        MPI_Reduce_scatter_block(send, ours, PAIRS, type, op, MPI_COMM_WORLD);
        PMPI_Reduce_scatter_block(send, theirs, PAIRS, type, op, MPI_COMM_WORLD);
    }
    return memcmp(ours, theirs, sizeof ours) != 0;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    const unsigned *from = in;
    unsigned *to = inout;
    (void)type;
    for (int i = 0; i < 2 * *count; ++i)
        to[i] += from[i];
}

static void ordered(int calls, int rank) {
    MPI_Datatype type;
    MPI_Op sum, composition;
    int size;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &sum);
    MPI_Op_create(compose, 0, &composition);
    for (int i = 0; i < calls && failures == 0; ++i)
        for (int which = 0; which < 3; ++which) {
            const MPI_Op op = i % 3 == 2 ? composition : sum;
            EXPECT(!reduces(which, type, op, (unsigned)i, rank, size));
            EXPECT(agree(MPI_COMM_WORLD));
        }
    MPI_Op_free(&sum);
    MPI_Op_free(&composition);
    MPI_Type_free(&type);
}

struct work {
    MPI_Comm comm;
    int calls, number;
};

static void *of_thread(void *argument) {
    const struct work *work = argument;
    for (int i = 0; i < work->calls && failures == 0; ++i) {
        EXPECT(!differs(i % COLLECTIVES, 64, 0, (unsigned)work->number, work->comm));
        EXPECT(agree(work->comm));
    }
    return NULL;
}

static void threads(int calls) {
    struct work work[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; ++i) {
        work[i] = (struct work){.calls = calls, .number = i};
        MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comm);
    }
    for (int i = 0; i < 2; ++i)
        pthread_create(&thread[i], NULL, of_thread, &work[i]);
    for (int i = 0; i < 2; ++i) {
        pthread_join(thread[i], NULL);
        MPI_Comm_free(&work[i].comm);
    }
}

enum { BATCH = 200 };

/* An even number of calls; two lines take turns. */
static void barriers(int calls, int lines) {
    if (lines == 1) {
        for (int i = 0; i < calls; ++i)
            MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < calls; i += 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Before the batches, as many calls as it takes to select it. */
static void nothing(int calls, int lines, int rank) {
    double least = 1;
    barriers(calls, lines);
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int batch = 0; batch < calls / BATCH; ++batch) {
        const double start = PMPI_Wtime();
        barriers(BATCH, lines);
        const double seconds = (PMPI_Wtime() - start) / BATCH;
        least = seconds < least ? seconds : least;
    }
    EXPECT(strcmp(libcoll_latest(), "absent") == 0);
    if (rank == 0)
        printf("%.1f\n", least * 1e9);
}

int main(int argc, char **argv) {
    int rank, provided;
    const char *what = argc > 2 ? argv[1] : "";
    const int calls = atoi(argv[argc > 2 ? 2 : 0]);
    EXPECT(setlocale(LC_ALL, "") != NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(what, "stress") == 0 && argc > 4)
        stress(calls, (unsigned)atoi(argv[3]), atoi(argv[4]), rank);
    else if (strcmp(what, "same") == 0 && argc > 4)
        same(argv[2], atoi(argv[3]), atoi(argv[4]));
    else if (strcmp(what, "alternating") == 0)
        alternating(calls, rank);
    else if (strcmp(what, "sites") == 0)
        sites(calls, rank);
    else if (strcmp(what, "turns") == 0)
        turns(calls, rank);
    else if (strcmp(what, "sequence") == 0 && argc > 4)
        sequence(argv[2], argv[3], atoi(argv[4]));
    else if (strcmp(what, "astray") == 0)
        astray(calls, rank);
    else if (strcmp(what, "leaving") == 0)
        leaving(calls, rank);
    else if (strcmp(what, "ordered") == 0)
        ordered(calls, rank);
    else if (strcmp(what, "threads") == 0 && provided == MPI_THREAD_MULTIPLE)
        threads(calls);
    else if (strcmp(what, "nothing") == 0 && argc > 3)
        nothing(calls, atoi(argv[3]), rank);
    else
        EXPECT(!"arguments");
    return finish();
}
