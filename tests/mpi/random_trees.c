/*
 * Collectives along many configured trees, which a file has as numbers: of each tree the number of
 * nodes; then for each node its worker, how many contributors it has, and these.
 *
 *   random_trees FILE   prints how many trees there were
 */
#include "../../templates/engines/configured_tree.h"
#include "dispatch.h"
#include "program.h"

enum { TREES_MOST = 1 << 14, NUMBERS_MOST = 1 << 10, COUNT = 3 };

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

/* The next tree of the file; 0 at its end. */
static int read_tree(FILE *file) {
    int at = 0, count;
    if (fscanf(file, "%d", &tree.nodes) != 1)
        return 0;
    EXPECT(tree.nodes < NUMBERS_MOST);
    if (failures != 0)
        return 0;
    for (int node = 0; node < tree.nodes; ++node) {
        EXPECT(fscanf(file, "%d %d", &worker[node], &count) == 2 && at + count < NUMBERS_MOST);
        if (failures != 0)
            return 0;
        first[node] = at;
        for (int i = 0; i < count; ++i)
            EXPECT(fscanf(file, "%d", &contributor[at++]) == 1);
    }
    first[tree.nodes] = at;
    return failures == 0;
}

/* Element i of rank r is r + i. */
static int sum_of(int element, int size) {
    return size * (size - 1) / 2 + size * element;
}

static void try_tree(int rank, int size, int root) {
    int own[COUNT], got[COUNT] = {0};
    struct coll_call call = {.comm = MPI_COMM_WORLD,
                             .sendbuf = own,
                             .recvbuf = got,
                             .recv_count = COUNT,
                             .recv_type = MPI_INT,
                             .op = MPI_SUM,
                             .root = root};
    struct coll_call allreduce = call, reduce = call, bcast = call, barrier = call;
    for (int i = 0; i < COUNT; ++i)
        own[i] = rank + i;
    allreduce.collective = COLL_ALLREDUCE;
    run(&allreduce, coll_configured_tree_allreduce);
    for (int i = 0; i < COUNT; ++i)
        EXPECT(got[i] == sum_of(i, size));
    memset(got, 0, sizeof got);
    reduce.collective = COLL_REDUCE;
    run(&reduce, coll_configured_tree_reduce);
    for (int i = 0; i < COUNT; ++i)
        EXPECT(got[i] == (rank == root ? sum_of(i, size) : 0));
    bcast.collective = COLL_BCAST;
    bcast.recvbuf = own;
    run(&bcast, coll_configured_tree_bcast);
    for (int i = 0; i < COUNT; ++i)
        EXPECT(own[i] == root + i);
    barrier.collective = COLL_BARRIER;
    run(&barrier, coll_configured_tree_barrier);
}

int main(int argc, char **argv) {
    int rank, size, trees = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    EXPECT(file != NULL);
    while (file != NULL && trees < TREES_MOST && read_tree(file)) {
        tree.owner = &owners[trees];
        try_tree(rank, size, trees % size);
        ++trees;
    }
    if (file != NULL)
        fclose(file);
    if (rank == 0)
        printf("%d trees\n", trees);
    return finish();
}
