/*
 * Collectives along many configured trees, which a file has as numbers: of each tree the number of
 * nodes; then for each node its worker, how many contributors it has, and these. Each call has
 * data, a root and a way within hosts by chance, and the result of the native routine. To some
 * barriers one rank comes late: nobody leaves before it has come.
 *
 *   random_trees FILE SEED   prints how many trees there were, how many calls had messages that fit
 *                            into shared memory, and how many windows of it there were
 */
#include <time.h>

#include "../../templates/engines/configured_tree.h"
#include "dispatch.h"
#include "program.h"

enum { TREES_MOST = 1 << 14, NUMBERS_MOST = 1 << 10 };

/* Trees on one communicator; the windows of their shared memory end with it. */
enum { BATCH = 24 };

enum { MOST = 3001, WIDEST = 12, ROOM = (MOST + 4) * WIDEST };

enum { LATE_NS = 3000000 };

static char owners[TREES_MOST]; /* their addresses: every tree is one of its own */
static int worker[NUMBERS_MOST], first[NUMBERS_MOST], contributor[NUMBERS_MOST];
static struct configured_tree tree = {.worker = worker, .first = first, .contributor = contributor};
static int on_host;

typedef int along(const struct coll_call *call, const struct coll_comm *cc,
                  const struct configured_tree *tree, int on_host);

static along *how;

static int run_tree(const struct coll_call *call, const struct coll_comm *cc,
                    const struct coll_parameters *parameters) {
    (void)parameters;
    return how(call, cc, &tree, on_host);
}

/* Through the view that routines get. */
static void run(struct coll_call *call, along *engine) {
    struct coll_routine routine = *coll_native[call->collective];
    struct coll_comm *cc;
    routine.run = run_tree;
    routine.constraints = 0;
    how = engine;
    EXPECT(coll_comm_get(call->comm, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(call->comm, cc) == MPI_SUCCESS);
    EXPECT(coll_views[call->collective]->measure(call) == MPI_SUCCESS);
    EXPECT(coll_run(&routine, call, cc, &routine.defaults) == MPI_SUCCESS);
}

/* The next tree of the file; 0 at its end, or where it is damaged: alike on all ranks. */
static int read_tree(FILE *file) {
    const int before = failures;
    int at = 0, count;
    if (fscanf(file, "%d", &tree.nodes) != 1)
        return 0;
    EXPECT(tree.nodes < NUMBERS_MOST);
    if (failures != before)
        return 0;
    for (int node = 0; node < tree.nodes; ++node) {
        EXPECT(fscanf(file, "%d %d", &worker[node], &count) == 2 && at + count < NUMBERS_MOST);
        if (failures != before)
            return 0;
        first[node] = at;
        for (int i = 0; i < count; ++i)
            EXPECT(fscanf(file, "%d", &contributor[at++]) == 1);
    }
    first[tree.nodes] = at;
    return failures == before;
}

/* What a call has, by chance, alike on all ranks. */
struct variant {
    MPI_Datatype type;
    MPI_Op op;
    int width; /* from one element to the next */
    int count, root, in_place;
};

static MPI_Datatype gapped; /* two of three ints */
static MPI_Op sum_of_pairs;
static int shared_calls, windows;

int __real_PMPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm,
                                    void *memory, MPI_Win *window);
int __wrap_PMPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm,
                                    void *memory, MPI_Win *window);

int __wrap_PMPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm,
                                    void *memory, MPI_Win *window) {
    ++windows;
    return __real_PMPI_Win_allocate_shared(bytes, unit, info, comm, memory, window);
}

static void add_pairs(void *in, void *inout, int *count, MPI_Datatype *type) {
    const int *theirs = in;
    int *mine = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        mine[3 * i] += theirs[3 * i];
        mine[3 * i + 2] += theirs[3 * i + 2];
    }
}

static struct variant by_chance(unsigned *state, int ranks) {
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, gapped};
    const int widths[] = {4, 8, 12}, sizes[] = {4, 8, 8}, kind = (int)(next_random(state) % 3);
    /* None, one, a few; as many as a shared channel holds, or posted receives may have, or more. */
    const int counts[] = {0,
                          1,
                          7,
                          1008 / sizes[kind],
                          1008 / sizes[kind] + 1,
                          8192 / sizes[kind],
                          8192 / sizes[kind] + 1,
                          MOST};
    const MPI_Op op = next_random(state) % 2 == 0 ? MPI_SUM : MPI_MAX;
    return (struct variant){.type = types[kind],
                            .op = kind == 2 ? sum_of_pairs : op,
                            .width = widths[kind],
                            .count = counts[next_random(state) % 8],
                            .root = (int)(next_random(state) % (unsigned)ranks),
                            .in_place = next_random(state) % 2 == 0};
}

/* Numbers that add up without rounding, in all the room that a call may touch and a little more. */
static void fill(char *data, const struct variant *variant, unsigned seed) {
    unsigned state = seed;
    const size_t bytes = (size_t)(variant->count + 4) * (size_t)variant->width;
    for (size_t at = 0; variant->type == MPI_DOUBLE && at < bytes; at += sizeof(double))
        memcpy(data + at, &(double){next_random(&state) % 1000}, sizeof(double));
    for (size_t at = 0; variant->type != MPI_DOUBLE && at < bytes; at += sizeof(int))
        memcpy(data + at, &(int){(int)(next_random(&state) % 1000)}, sizeof(int));
}

static int native(const struct coll_call *call) {
    if (call->collective == COLL_ALLREDUCE)
        return PMPI_Allreduce(call->sendbuf, call->recvbuf, call->recv_count, call->recv_type,
                              call->op, call->comm);
    if (call->collective == COLL_REDUCE)
        return PMPI_Reduce(call->sendbuf, call->recvbuf, call->recv_count, call->recv_type,
                           call->op, call->root, call->comm);
    return PMPI_Bcast(call->recvbuf, call->recv_count, call->recv_type, call->root, call->comm);
}

/* A call along the tree gets, byte by byte, what the native one gets. */
static void compare(enum coll_collective collective, along *engine, MPI_Comm comm,
                    unsigned *state) {
    static char own[ROOM], expected[ROOM], actual[ROOM];
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const struct variant variant = by_chance(state, size);
    const unsigned seed = next_random(state) + 977U * (unsigned)rank;
    const int in_place = variant.in_place && collective != COLL_BCAST &&
                         (collective != COLL_REDUCE || rank == variant.root);
    fill(own, &variant, seed);
    fill(expected, &variant, in_place ? seed : seed + 1);
    fill(actual, &variant, in_place ? seed : seed + 1);
    struct coll_call call = {.collective = collective,
                             .comm = comm,
                             .sendbuf = in_place ? MPI_IN_PLACE : own,
                             .recvbuf = expected,
                             .recv_count = variant.count,
                             .recv_type = variant.type,
                             .op = variant.op,
                             .root = variant.root};
    EXPECT(native(&call) == MPI_SUCCESS);
    call.recvbuf = actual;
    run(&call, engine);
    EXPECT(memcmp(expected, actual, (size_t)(variant.count + 4) * (size_t)variant.width) == 0);
    shared_calls += on_host == CONFIGURED_TREE_SHARED && call.bytes <= 1008;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time); /* the same for all ranks of a machine */
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* In a third of the calls a rank comes late. Nobody leaves before all have come. */
static void try_barrier(MPI_Comm comm, unsigned *state) {
    const struct timespec pause = {.tv_nsec = LATE_NS};
    struct coll_call barrier = {.collective = COLL_BARRIER, .comm = comm};
    double last = 0;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (next_random(state) % (3 * (unsigned)size) == (unsigned)rank)
        nanosleep(&pause, NULL);
    const double came = now();
    run(&barrier, coll_configured_tree_barrier);
    const double left = now();
    PMPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
    EXPECT(left >= last);
}

static void try_tree(MPI_Comm comm, unsigned *state) {
    static const struct {
        enum coll_collective collective;
        along *engine;
    } all[] = {{COLL_ALLREDUCE, coll_configured_tree_allreduce},
               {COLL_REDUCE, coll_configured_tree_reduce},
               {COLL_BCAST, coll_configured_tree_bcast},
               {COLL_ALLREDUCE, coll_configured_tree_allreduce}};
    const unsigned ways = next_random(state) % 2 == 0 ? 1 : 2;
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        on_host = 1 + (int)(next_random(state) % ways);
        compare(all[i].collective, all[i].engine, comm, state);
    }
    on_host = (int)ways;
    try_barrier(comm, state);
}

/* A communicator of all ranks, in their order or in another one. */
static MPI_Comm new_comm(int rank, int batch) {
    MPI_Comm comm;
    if (batch % 2 == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, 0, batch % 4 == 1 ? -rank : (5 * rank + batch) % 16, &comm);
    return comm;
}

int main(int argc, char **argv) {
    int rank, trees = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_vector(2, 1, 2, MPI_INT, &gapped);
    MPI_Type_commit(&gapped);
    MPI_Op_create(add_pairs, 1, &sum_of_pairs);
    FILE *file = argc == 3 ? fopen(argv[1], "r") : NULL;
    unsigned state = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
    EXPECT(file != NULL);
    while (file != NULL && trees < TREES_MOST && read_tree(file)) {
        if (trees % BATCH == 0) {
            if (comm != MPI_COMM_NULL)
                MPI_Comm_free(&comm);
            comm = new_comm(rank, trees / BATCH);
        }
        tree.owner = &owners[trees];
        try_tree(comm, &state);
        ++trees;
    }
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    if (file != NULL)
        fclose(file);
    MPI_Op_free(&sum_of_pairs);
    MPI_Type_free(&gapped);
    if (rank == 0)
        printf("%d trees, %d calls, %d windows\n", trees, shared_calls, windows);
    return finish();
}
