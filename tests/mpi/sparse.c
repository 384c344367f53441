/*
 * Calls of the v-collectives in which most blocks are empty: every routine sends what has data and
 * nothing else. The messages of the library are counted; what arrives is compared with what was
 * sent.
 *
 *   sparse RADIX   the largest radix of bundles of blocks
 */
#include "program.h"

#include "counting.h"

enum { INTS = 3, ROOM = 2 * INTS, RANKS_MOST = 32 };

static int rank, size;

/* Elements from one rank to another, 0 in most cases. */
typedef int pattern(int from, int to);

static int apart(int from, int to) {
    const int distance = (to - from + size) % size;
    return distance < size - distance ? distance : size - distance;
}

/* Six neighbours on a ring. */
static int neighbours(int from, int to) {
    return apart(from, to) > 0 && apart(from, to) <= 3 ? 1 + (from + to) % ROOM : 0;
}

/* One way only, and to oneself. */
static int upwards(int from, int to) {
    return (to - from + size) % size <= 1 ? 1 + from % INTS : 0;
}

static int from_first(int from, int to) {
    return from == 0 ? 1 + to % INTS : 0;
}

static int to_last(int from, int to) {
    return to == size - 1 ? 1 + from % INTS : 0;
}

static int one_pair(int from, int to) {
    return (from == 1 && to == size - 1) || (from == size - 1 && to == 1) ? ROOM : 0;
}

static int nobody(int from, int to) {
    (void)from;
    (void)to;
    return 0;
}

static int number(int from, int to, int i) {
    return 10000 * from + 100 * to + i;
}

/* Counts and places of the blocks of one side; who has no data may have elements of none. */
struct blocks_of_side {
    int counts[RANKS_MOST], displacements[RANKS_MOST], all;
    MPI_Datatype type;
};

static MPI_Datatype hollow;

static struct blocks_of_side side_of(pattern *elements, int sends) {
    struct blocks_of_side side = {.type = MPI_INT};
    for (int i = 0; i < size; ++i) {
        side.counts[i] = sends ? elements(rank, i) : elements(i, rank);
        side.displacements[i] = i * ROOM;
        side.all += i == rank ? 0 : side.counts[i] > 0;
    }
    if (side.all == 0 && elements(rank, rank) == 0 && rank % 2 == 0) {
        side.type = hollow;
        for (int i = 0; i < size; ++i)
            side.counts[i] = i;
    }
    return side;
}

static void run(const struct coll_routine *routine, const struct coll_parameters *parameters,
                struct coll_call *call) {
    struct coll_comm *cc;
    EXPECT(coll_comm_get(call->comm, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(call->comm, cc) == MPI_SUCCESS);
    EXPECT(coll_views[call->collective]->measure(call) == MPI_SUCCESS);
    memset(&counted, 0, sizeof counted);
    EXPECT(coll_run(routine, call, cc, parameters) == MPI_SUCCESS);
}

/* Blocks travel in bundles, which go whatever is in them. */
static int has_bundles(const struct coll_routine *routine) {
    return strcmp(routine->name, "bruck_and_direct") == 0;
}

/* How many bundles a rank sends: for each digit of a distance, all values that it may have. */
static int bundles_of(int radix) {
    int bundles = 0;
    for (int weight = 1; weight < size; weight *= radix) {
        const int most = (size - 1) / weight;
        bundles += radix - 1 < most ? radix - 1 : most;
    }
    return bundles;
}

static void alltoallv(const struct coll_routine *routine, const struct coll_parameters *parameters,
                      pattern *elements, int in_place) {
    const struct blocks_of_side sent = side_of(elements, 1), got = side_of(elements, 0);
    int out[RANKS_MOST * ROOM], in[RANKS_MOST * ROOM];
    for (int i = 0; i < size * ROOM; ++i) {
        out[i] = number(rank, i / ROOM, i % ROOM);
        in[i] = in_place ? out[i] : -1;
    }
    struct coll_call call = {
        .collective = COLL_ALLTOALLV,
        .comm = MPI_COMM_WORLD,
        .sendbuf = in_place ? MPI_IN_PLACE : out,
        .recvbuf = in,
        .send_type = sent.type,
        .recv_type = got.type,
        .send_blocks = {.counts = sent.counts, .displacements = sent.displacements},
        .recv_blocks = {.counts = got.counts, .displacements = got.displacements}};
    run(routine, parameters, &call);
    for (int i = 0; i < size * ROOM; ++i) {
        const int from = i / ROOM, arrives = i % ROOM < elements(from, rank);
        EXPECT(in[i] == (arrives ? number(from, rank, i % ROOM) : in_place ? out[i] : -1));
    }
    EXPECT(has_bundles(routine) ? counted.blocks == bundles_of(parameters->radix)
                                : counted.blocks == sent.all);
    EXPECT(counted.empty == 0);
    EXPECT(counted.tokens <= got.all);
    EXPECT(counted.copies == 0);
}

static void alltoallvs(const struct coll_routine *routine,
                       const struct coll_parameters *parameters) {
    static pattern *const patterns[] = {neighbours, upwards, from_first, to_last, one_pair, nobody};
    for (size_t k = 0; k < sizeof patterns / sizeof *patterns; ++k)
        alltoallv(routine, parameters, patterns[k], 0);
    alltoallv(routine, parameters, neighbours, 1);
    alltoallv(routine, parameters, one_pair, 1);
}

/* With every radix that tuning may choose here. */
static void alltoallvs_in_bundles(const struct coll_routine *routine, int radix_most) {
    struct coll_parameters parameters = routine->defaults;
    for (parameters.radix = 2; parameters.radix <= radix_most; ++parameters.radix)
        alltoallvs(routine, &parameters);
}

/* Every fifth rank has data. */
static int sparse_count(int from) {
    return from % 5 == 2 ? 1 + from % INTS : 0;
}

static void allgatherv(const struct coll_routine *routine) {
    int counts[RANKS_MOST], displacements[RANKS_MOST], own[ROOM], in[RANKS_MOST * ROOM], others = 0;
    for (int i = 0; i < size; ++i) {
        counts[i] = sparse_count(i);
        displacements[i] = i * ROOM;
        others += i != rank && counts[i] > 0;
    }
    for (int i = 0; i < size * ROOM; ++i) {
        own[i % ROOM] = number(rank, 0, i % ROOM);
        in[i] = -1;
    }
    const int has = counts[rank] > 0;
    struct coll_call call = {.collective = COLL_ALLGATHERV,
                             .comm = MPI_COMM_WORLD,
                             .sendbuf = own,
                             .recvbuf = in,
                             .send_count = has ? counts[rank] : 5,
                             .send_type = has ? MPI_INT : hollow,
                             .recv_type = MPI_INT,
                             .recv_blocks = {.counts = counts, .displacements = displacements}};
    run(routine, &routine->defaults, &call);
    for (int i = 0; i < size * ROOM; ++i)
        EXPECT(in[i] == (i % ROOM < sparse_count(i / ROOM) ? number(i / ROOM, 0, i % ROOM) : -1));
    EXPECT(counted.empty == 0);
    EXPECT(counted.tokens <= others);
    EXPECT(counted.copies == 0);
}

int main(int argc, char **argv) {
    const int radix_most = argc > 1 ? atoi(argv[1]) : 2;
    struct coll_comm *cc;
    int tried = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(0, MPI_INT, &hollow);
    MPI_Type_commit(&hollow);
    EXPECT(coll_comm_get(MPI_COMM_WORLD, &cc) == MPI_SUCCESS);
    for (int i = 0; i < coll_routine_count; ++i) {
        const struct coll_routine *routine = &coll_routines[i];
        if ((routine->constraints & COLL_UNPREPARED) || !coll_applicable(routine, cc, 1))
            continue;
        const int before = failures;
        if (routine->collective == COLL_ALLTOALLV && has_bundles(routine)) {
            alltoallvs_in_bundles(routine, radix_most);
        } else if (routine->collective == COLL_ALLTOALLV) {
            alltoallvs(routine, &routine->defaults);
        } else if (routine->collective == COLL_ALLGATHERV) {
            allgatherv(routine);
        } else {
            continue;
        }
        ++tried;
        if (rank == 0)
            printf("%s %s\n", coll_collective_names[routine->collective], routine->name);
        if (failures > before)
            fprintf(stderr, "rank %d: %s %s fails\n", rank,
                    coll_collective_names[routine->collective], routine->name);
    }
    EXPECT(tried > 0);
    MPI_Type_free(&hollow);
    return finish();
}
