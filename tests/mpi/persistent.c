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

/* The same call of MPI_..._init or, blocking and native, for the results. */
static void call_it(struct operation *one, int *recv, int native) {
    const int is_root = one->rank == one->root,
              has_root = one->kind >= REDUCE && one->kind <= SCATTER;
    const int in_place = one->in_place && (is_root || !has_root);
    const void *send = in_place && one->kind != SCATTER ? MPI_IN_PLACE : one->send;
    void *part = in_place && one->kind == SCATTER ? MPI_IN_PLACE : recv;
    const MPI_Datatype type = one->type;
    MPI_Request *request = &one->request;
    const int n = one->count, mine = one->from[one->rank];
    const MPI_Comm comm = one->comm;
    switch (one->kind) {
    case ALLTOALL:
        if (native)
            PMPI_Alltoall(send, n, type, recv, n, type, comm);
        else if (one->is_large)
            MPI_Alltoall_init_c(send, n, type, recv, n, type, comm, MPI_INFO_NULL, request);
        else
            MPI_Alltoall_init(send, n, type, recv, n, type, comm, MPI_INFO_NULL, request);
        break;
    case ALLTOALLV:
        if (native)
            PMPI_Alltoallv(send, one->counts, one->places, type, recv, one->from, one->from_places,
                           type, comm);
        else
            MPI_Alltoallv_init(send, one->counts, one->places, type, recv, one->from,
                               one->from_places, type, comm, MPI_INFO_NULL, request);
        break;
    case ALLGATHER:
        if (native)
            PMPI_Allgather(send, n, type, recv, n, type, comm);
        else
            MPI_Allgather_init(send, n, type, recv, n, type, comm, MPI_INFO_NULL, request);
        break;
    case ALLGATHERV:
        if (native)
            PMPI_Allgatherv(send, mine, type, recv, one->from, one->from_places, type, comm);
        else
            MPI_Allgatherv_init(send, mine, type, recv, one->from, one->from_places, type, comm,
                                MPI_INFO_NULL, request);
        break;
    case ALLREDUCE:
        if (native)
            PMPI_Allreduce(send, recv, n, MPI_INT, MPI_SUM, comm);
        else if (one->is_large)
            MPI_Allreduce_init_c(send, recv, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
        else
            MPI_Allreduce_init(send, recv, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
        break;
    case BCAST:
        if (native)
            PMPI_Bcast(recv, n, type, one->root, comm);
        else
            MPI_Bcast_init(recv, n, type, one->root, comm, MPI_INFO_NULL, request);
        break;
    case REDUCE:
        if (native)
            PMPI_Reduce(send, recv, n, MPI_INT, MPI_SUM, one->root, comm);
        else if (one->is_large)
            MPI_Reduce_init_c(send, recv, n, MPI_INT, MPI_SUM, one->root, comm, MPI_INFO_NULL,
                              request);
        else
            MPI_Reduce_init(send, recv, n, MPI_INT, MPI_SUM, one->root, comm, MPI_INFO_NULL,
                            request);
        break;
    case GATHER:
        if (native)
            PMPI_Gather(send, n, type, recv, n, type, one->root, comm);
        else
            MPI_Gather_init(send, n, type, recv, n, type, one->root, comm, MPI_INFO_NULL, request);
        break;
    case SCATTER:
        if (native)
            PMPI_Scatter(send, n, type, part, n, type, one->root, comm);
        else
            MPI_Scatter_init(send, n, type, part, n, type, one->root, comm, MPI_INFO_NULL, request);
        break;
    case BARRIER:
        if (native)
            PMPI_Barrier(comm);
        else
            MPI_Barrier_init(comm, MPI_INFO_NULL, request);
        break;
    case REDUCE_SCATTER:
        if (native)
            PMPI_Reduce_scatter(send, recv, one->from, MPI_INT, MPI_SUM, comm);
        else
            MPI_Reduce_scatter_init(send, recv, one->from, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                                    request);
        break;
    case REDUCE_SCATTER_BLOCK:
        if (native)
            PMPI_Reduce_scatter_block(send, recv, n, MPI_INT, MPI_SUM, comm);
        else
            MPI_Reduce_scatter_block_init(send, recv, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
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
    call_it(one, one->recv, 0);
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
    call_it(one, one->expected, 1);
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
