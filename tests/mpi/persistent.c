/*
 * Persistent collectives in random programs: every legal order of init, start, completion and free,
 * on several communicators, mixed with native requests; results are compared with what blocking
 * calls of the MPI library give.
 *
 *   persistent [STEPS [SEED [served]]]
 *
 * Ranks choose alike where MPI asks for it: which operations there are, and which of them run.
 * Everything else is a rank's own choice: the order of starts, how it completes, when it blocks in
 * other calls meanwhile.
 */
#include "program.h"

enum { COMMS = 3, OPERATIONS = 8, NATIVES = 2, KINDS = 12, MOST = 5000, WAYS = 10 };

enum kind {
    ALLTOALL,
    ALLTOALLV,
    ALLGATHER,
    ALLGATHERV,
    ALLREDUCE,
    BCAST,
    REDUCE,
    GATHER,
    SCATTER,
    BARRIER,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK
};

/* The application's: an operation, its data and the results that are right. */
struct operation {
    enum kind kind;
    MPI_Request request;
    MPI_Comm comm; /* MPI_COMM_NULL once it was freed before its request */
    int is_made, is_started, rank, size, count, root, in_place, is_vector, is_large;
    int counts[PEERS_MOST], places[PEERS_MOST], from[PEERS_MOST], from_places[PEERS_MOST];
    struct {
        MPI_Count counts[PEERS_MOST], from[PEERS_MOST];
        MPI_Aint places[PEERS_MOST], from_places[PEERS_MOST];
    } large; /* the same, for calls with large counts */
    int *send, *recv, *expected;
    size_t room;
    MPI_Datatype type;
    unsigned seed;
};

static unsigned common, own;
static MPI_Comm comms[COMMS];
static struct operation operations[OPERATIONS];
static int served, rank_of_world; /* served: the library has plans for all kinds */

static unsigned below(unsigned *state, unsigned most) {
    return next_random(state) % most;
}

static int reduces(enum kind kind) {
    return kind == ALLREDUCE || kind == REDUCE || kind == REDUCE_SCATTER ||
           kind == REDUCE_SCATTER_BLOCK;
}

/* Blocks of alltoallv: what one rank has for another, known to both. */
static int block(const struct operation *one, int from, int to) {
    unsigned state = one->seed + 31U * (unsigned)from + 1009U * (unsigned)to;
    (void)next_random(&state);
    return below(&state, 4) == 0 ? 0 : (int)below(&state, (unsigned)one->count + 1);
}

static void lay_out(struct operation *one) {
    int out = 0, in = 0;
    for (int rank = 0; rank < one->size; ++rank) {
        const int symmetric = one->in_place && one->rank > rank;
        one->counts[rank] = symmetric ? block(one, rank, one->rank) : block(one, one->rank, rank);
        one->from[rank] = one->in_place ? one->counts[rank] : block(one, rank, one->rank);
        if (one->kind == ALLGATHERV || one->kind == REDUCE_SCATTER)
            one->from[rank] = block(one, rank, 0);
        one->places[rank] = out;
        one->from_places[rank] = in;
        out += one->counts[rank] + 1;
        in += one->from[rank] + 1;
    }
}

/* What all calls of an operation take, from the place of its root on. */
struct common_arguments {
    const void *send;
    void *recv, *part; /* part: where a scatter receives */
    int n, mine, root;
    MPI_Datatype type;
    MPI_Comm comm;
};

static struct common_arguments arguments_of(const struct operation *one, int *recv) {
    const int is_root = one->rank == one->root;
    const int has_root = one->kind >= REDUCE && one->kind <= SCATTER;
    const int in_place = one->in_place && (is_root || !has_root);
    return (struct common_arguments){.send = in_place && one->kind != SCATTER ? MPI_IN_PLACE
                                                                              : one->send,
                                     .recv = recv,
                                     .part = in_place && one->kind == SCATTER ? MPI_IN_PLACE : recv,
                                     .n = one->count,
                                     .mine = one->from[one->rank],
                                     .root = one->root,
                                     .type = one->type,
                                     .comm = one->comm};
}

/* Blocking and native, for the results that are right. */
static void call_native(const struct operation *one, int *recv) {
    const struct common_arguments a = arguments_of(one, recv);
    switch (one->kind) {
    case ALLTOALL:
        PMPI_Alltoall(a.send, a.n, a.type, a.recv, a.n, a.type, a.comm);
        break;
    case ALLTOALLV:
        PMPI_Alltoallv(a.send, one->counts, one->places, a.type, a.recv, one->from,
                       one->from_places, a.type, a.comm);
        break;
    case ALLGATHER:
        PMPI_Allgather(a.send, a.n, a.type, a.recv, a.n, a.type, a.comm);
        break;
    case ALLGATHERV:
        PMPI_Allgatherv(a.send, a.mine, a.type, a.recv, one->from, one->from_places, a.type,
                        a.comm);
        break;
    case ALLREDUCE:
        PMPI_Allreduce(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.comm);
        break;
    case BCAST:
        PMPI_Bcast(a.recv, a.n, a.type, a.root, a.comm);
        break;
    case REDUCE:
        PMPI_Reduce(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.root, a.comm);
        break;
    case GATHER:
        PMPI_Gather(a.send, a.n, a.type, a.recv, a.n, a.type, a.root, a.comm);
        break;
    case SCATTER:
        PMPI_Scatter(a.send, a.n, a.type, a.part, a.n, a.type, a.root, a.comm);
        break;
    case BARRIER:
        PMPI_Barrier(a.comm);
        break;
    case REDUCE_SCATTER:
        PMPI_Reduce_scatter(a.send, a.recv, one->from, MPI_INT, MPI_SUM, a.comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        PMPI_Reduce_scatter_block(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.comm);
        break;
    }
}

static void init(struct operation *one) {
    const struct common_arguments a = arguments_of(one, one->recv);
    const MPI_Info info = MPI_INFO_NULL;
    MPI_Request *request = &one->request;
    switch (one->kind) {
    case ALLTOALL:
        MPI_Alltoall_init(a.send, a.n, a.type, a.recv, a.n, a.type, a.comm, info, request);
        break;
    case ALLTOALLV:
        MPI_Alltoallv_init(a.send, one->counts, one->places, a.type, a.recv, one->from,
                           one->from_places, a.type, a.comm, info, request);
        break;
    case ALLGATHER:
        MPI_Allgather_init(a.send, a.n, a.type, a.recv, a.n, a.type, a.comm, info, request);
        break;
    case ALLGATHERV:
        MPI_Allgatherv_init(a.send, a.mine, a.type, a.recv, one->from, one->from_places, a.type,
                            a.comm, info, request);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.comm, info, request);
        break;
    case BCAST:
        MPI_Bcast_init(a.recv, a.n, a.type, a.root, a.comm, info, request);
        break;
    case REDUCE:
        MPI_Reduce_init(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.root, a.comm, info, request);
        break;
    case GATHER:
        MPI_Gather_init(a.send, a.n, a.type, a.recv, a.n, a.type, a.root, a.comm, info, request);
        break;
    case SCATTER:
        MPI_Scatter_init(a.send, a.n, a.type, a.part, a.n, a.type, a.root, a.comm, info, request);
        break;
    case BARRIER:
        MPI_Barrier_init(a.comm, info, request);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_init(a.send, a.recv, one->from, MPI_INT, MPI_SUM, a.comm, info, request);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block_init(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.comm, info, request);
        break;
    }
}

/* The same with counts of type MPI_Count, and displacements of type MPI_Aint. */
static void init_large(struct operation *one) {
    const struct common_arguments a = arguments_of(one, one->recv);
    const MPI_Info info = MPI_INFO_NULL;
    MPI_Request *request = &one->request;
    for (int rank = 0; rank < one->size; ++rank) {
        one->large.counts[rank] = one->counts[rank];
        one->large.places[rank] = one->places[rank];
        one->large.from[rank] = one->from[rank];
        one->large.from_places[rank] = one->from_places[rank];
    }
    switch (one->kind) {
    case ALLTOALL:
        MPI_Alltoall_init_c(a.send, a.n, a.type, a.recv, a.n, a.type, a.comm, info, request);
        break;
    case ALLTOALLV:
        MPI_Alltoallv_init_c(a.send, one->large.counts, one->large.places, a.type, a.recv,
                             one->large.from, one->large.from_places, a.type, a.comm, info,
                             request);
        break;
    case ALLGATHER:
        MPI_Allgather_init_c(a.send, a.n, a.type, a.recv, a.n, a.type, a.comm, info, request);
        break;
    case ALLGATHERV:
        MPI_Allgatherv_init_c(a.send, a.mine, a.type, a.recv, one->large.from,
                              one->large.from_places, a.type, a.comm, info, request);
        break;
    case ALLREDUCE:
        MPI_Allreduce_init_c(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.comm, info, request);
        break;
    case BCAST:
        MPI_Bcast_init_c(a.recv, a.n, a.type, a.root, a.comm, info, request);
        break;
    case REDUCE:
        MPI_Reduce_init_c(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.root, a.comm, info, request);
        break;
    case GATHER:
        MPI_Gather_init_c(a.send, a.n, a.type, a.recv, a.n, a.type, a.root, a.comm, info, request);
        break;
    case SCATTER:
        MPI_Scatter_init_c(a.send, a.n, a.type, a.part, a.n, a.type, a.root, a.comm, info, request);
        break;
    case BARRIER: /* it has no counts */
        MPI_Barrier_init(a.comm, info, request);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_init_c(a.send, a.recv, one->large.from, MPI_INT, MPI_SUM, a.comm, info,
                                  request);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block_init_c(a.send, a.recv, a.n, MPI_INT, MPI_SUM, a.comm, info,
                                        request);
        break;
    }
}

/* Elements of two integers and a gap, which are no plain bytes. */
static MPI_Datatype vector_type(void) {
    MPI_Datatype pair, type;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 4 * (MPI_Aint)sizeof(int), &type);
    MPI_Type_free(&pair);
    MPI_Type_commit(&type);
    return type;
}

/* Alike on all ranks. */
static void make(struct operation *one, int which) {
    *one = (struct operation){.kind = (enum kind)below(&common, KINDS),
                              .request = MPI_REQUEST_NULL,
                              .comm = comms[which],
                              .is_made = 1,
                              .seed = next_random(&common)};
    one->count = (int)below(&common, below(&common, 8) == 0 ? MOST : 40);
    one->in_place = below(&common, 4) == 0 && one->kind != BCAST;
    one->is_vector = below(&common, 5) == 0 && !reduces(one->kind);
    one->is_large = (int)below(&common, 2);
    MPI_Comm_rank(one->comm, &one->rank);
    MPI_Comm_size(one->comm, &one->size);
    one->root = (int)below(&common, (unsigned)one->size);
    one->type = one->is_vector ? vector_type() : MPI_INT;
    lay_out(one);
    one->room = 4 * (size_t)(one->count + 1) * (size_t)one->size;
    one->send = calloc(one->room, sizeof *one->send);
    one->recv = calloc(one->room, sizeof *one->recv);
    one->expected = calloc(one->room, sizeof *one->expected);
    (one->is_large ? init_large : init)(one);
    if (one->is_vector) /* which the operation keeps */
        MPI_Type_free(&one->type);
}

/* New data, alike in both buffers; and the results, for which all ranks come together. */
static void prepare(struct operation *one) {
    for (size_t i = 0; i < one->room; ++i) {
        one->send[i] = (int)below(&own, 1000);
        one->recv[i] = one->expected[i] = (int)below(&own, 1000);
    }
    if (one->is_vector)
        one->type = vector_type();
    call_native(one, one->expected);
    if (one->is_vector)
        MPI_Type_free(&one->type);
}

static void check(struct operation *one) {
    const int wrong = memcmp(one->recv, one->expected, one->room * sizeof(int)) != 0;
    if (wrong)
        fprintf(stderr, "rank %d: kind %d count %d in place %d vector %d\n", rank_of_world,
                (int)one->kind, one->count, one->in_place, one->is_vector);
    EXPECT(!wrong);
    one->is_started = 0;
}

static void destroy(struct operation *one) {
    EXPECT(MPI_Request_free(&one->request) == MPI_SUCCESS);
    EXPECT(one->request == MPI_REQUEST_NULL);
    free(one->send);
    free(one->recv);
    free(one->expected);
    one->is_made = 0;
}

/* A message around the ring of all ranks, which needs their progress. */
static void pass_on(void) {
    int size, out = 7, in = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&out, 1, MPI_INT, (rank_of_world + 1) % size, 99, &in, 1, MPI_INT,
                 (rank_of_world + size - 1) % size, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(in == 7);
}

/*
 * Whether the library serves an operation for sure, where the program is told that it does at all.
 * MPICH 4.3.2's MPI_Testall takes a persistent collective of its own that is not complete for an
 * error, so it is called for others only.
 */
static int is_ours(const struct operation *one) {
    const int kinds = 1 << ALLTOALL | 1 << ALLGATHER | 1 << BCAST | 1 << REDUCE | 1 << GATHER |
                      1 << SCATTER | 1 << BARRIER | 1 << REDUCE_SCATTER_BLOCK;
    const int has_data = one->count > 0 || one->kind == BARRIER;
    return served && has_data && one->size > 1 && !one->is_vector && (kinds >> one->kind & 1);
}

/* All of a set have completed: those of ours are `chosen[0, count)`, then native ones. */
static void complete(struct operation **chosen, int count, unsigned way) {
    MPI_Request requests[OPERATIONS + NATIVES];
    MPI_Status statuses[OPERATIONS + NATIVES];
    int got[NATIVES], indices[OPERATIONS + NATIVES], left = count + NATIVES, done = 0, some;
    const int all = left;
    for (int i = 0; way == 3 && i < count; ++i)
        if (!is_ours(chosen[i]))
            way = 0;
    for (int i = 0; i < count; ++i)
        requests[i] = chosen[i]->request;
    for (int i = 0; i < NATIVES; ++i)
        MPI_Irecv(&got[i], 1, MPI_INT, rank_of_world, i, MPI_COMM_WORLD, &requests[count + i]);
    for (int i = NATIVES - 1; i >= 0; --i)
        MPI_Send(&i, 1, MPI_INT, rank_of_world, i, MPI_COMM_WORLD);
    switch (way) {
    case 0:
        EXPECT(MPI_Waitall(all, requests, statuses) == MPI_SUCCESS);
        break;
    case 1:
        for (int i = all - 1; i >= 0; --i)
            EXPECT(MPI_Wait(&requests[i], &statuses[i]) == MPI_SUCCESS);
        break;
    case 2:
        for (int i = 0; i < all; ++i)
            for (done = 0; !done;)
                MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
        break;
    case 3:
        while (!done)
            MPI_Testall(all, requests, &done, MPI_STATUSES_IGNORE);
        break;
    case 4:
        for (int index = 0; left > 0; --left) {
            MPI_Waitany(all, requests, &index, MPI_STATUS_IGNORE);
            EXPECT(index >= 0 && index < all);
        }
        break;
    case 5:
        for (int index = 0; left > 0; left -= done && index != MPI_UNDEFINED)
            MPI_Testany(all, requests, &index, &done, MPI_STATUS_IGNORE);
        break;
    case 6:
        for (; left > 0; left -= some)
            MPI_Waitsome(all, requests, &some, indices, statuses);
        break;
    case 7:
        for (; left > 0; left -= some == MPI_UNDEFINED ? 0 : some)
            MPI_Testsome(all, requests, &some, indices, MPI_STATUSES_IGNORE);
        break;
    case 8:
        for (int i = 0; i < all; ++i) {
            for (done = 0; !done;)
                MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
        break;
    default:
        for (int i = 0; i < all; ++i)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    }
    /* they are inactive now: nothing is waited for */
    MPI_Waitany(count, requests, &some, statuses);
    EXPECT(some == MPI_UNDEFINED);
    MPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; ++i) {
        EXPECT(requests[i] == chosen[i]->request);
        check(chosen[i]);
    }
    for (int i = 0; i < NATIVES; ++i)
        EXPECT(got[i] == i && requests[count + i] == MPI_REQUEST_NULL);
}

static void shuffle(struct operation **chosen, int count) {
    for (int i = count - 1; i > 0; --i) {
        const int other = (int)below(&own, (unsigned)i + 1);
        struct operation *one = chosen[i];
        chosen[i] = chosen[other];
        chosen[other] = one;
    }
}

/* Some of the operations run, all at a time; each rank starts and completes them in its own way. */
static void run_some(void) {
    struct operation *chosen[OPERATIONS];
    MPI_Request requests[OPERATIONS];
    int count = 0;
    for (int i = 0; i < OPERATIONS; ++i)
        if (operations[i].is_made && operations[i].comm != MPI_COMM_NULL && below(&common, 2))
            chosen[count++] = &operations[i];
    for (int i = 0; i < count; ++i)
        prepare(chosen[i]);
    shuffle(chosen, count);
    const unsigned together = below(&own, 2);
    for (int i = 0; i < count; ++i) {
        requests[i] = chosen[i]->request;
        if (!together)
            EXPECT(MPI_Start(&chosen[i]->request) == MPI_SUCCESS);
    }
    if (together)
        EXPECT(MPI_Startall(count, requests) == MPI_SUCCESS);
    const unsigned meanwhile = below(&common, 4);
    if (meanwhile == 0)
        pass_on();
    /* A rank may have ended its operations, while others wait for that first. */
    const int late = meanwhile == 1 && below(&own, 2);
    if (late)
        PMPI_Barrier(MPI_COMM_WORLD);
    shuffle(chosen, count);
    complete(chosen, count, below(&own, WAYS));
    if (meanwhile == 1 && !late)
        PMPI_Barrier(MPI_COMM_WORLD);
}

static void renew(int which) {
    for (int i = 0; i < OPERATIONS; ++i)
        if (operations[i].is_made && operations[i].comm == comms[which])
            operations[i].comm = MPI_COMM_NULL; /* its request goes later */
    MPI_Comm_free(&comms[which]);
    if (below(&common, 2))
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[which]);
    else
        MPI_Comm_split(MPI_COMM_WORLD, rank_of_world % 2, -rank_of_world, &comms[which]);
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 200;
    common = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    served = argc > 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_world);
    own = 77U * (unsigned)rank_of_world + common;
    for (int i = 0; i < COMMS; ++i)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int step = 0; step < steps; ++step) {
        struct operation *one = &operations[below(&common, OPERATIONS)];
        const unsigned what = below(&common, 8);
        const int which = (int)below(&common, COMMS);
        if (what == 0 && one->is_made)
            destroy(one);
        else if (what < 4 && !one->is_made)
            make(one, which);
        else if (what == 4 && below(&common, 8) == 0)
            renew(which);
        else
            run_some();
    }
    for (int i = 0; i < OPERATIONS; ++i)
        if (operations[i].is_made && i % 2 == 0) /* others are live at the end */
            destroy(&operations[i]);
    return finish();
}
