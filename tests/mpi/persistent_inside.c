/*
 * What the library does inside for persistent collectives: how it takes part in the progress of the
 * MPI library, how much memory it takes, how many receives it posts, and what an init
 * calls. Link with WRAPS of
 * test_persistent.py.
 *
 *   persistent_inside nested|unhooked|overlap|places|inits|kinds|looks|many
 */
#include <unistd.h>

#include "program.h"

#include "coll.h"

enum { SENT = 8, ROOM = 4 };

static int class_of(int error) {
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    return class;
}

static void probe(void) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* The function that the MPI library calls for progress: how deep, and how often to refuse it. */
static MPIX_Async_poll_function *polled;
static int depth, refusals, polls;

static int watch(MPIX_Async_thing thing) {
    ++polls;
    ++depth;
    const int result = polled(thing);
    --depth;
    EXPECT(depth == 0 || result != MPIX_ASYNC_DONE); /* the outer call still has the thing */
    return result;
}

int __real_PMPIX_Async_start(MPIX_Async_poll_function *poll, void *state, MPIX_Stream stream);
int __wrap_PMPIX_Async_start(MPIX_Async_poll_function *poll, void *state, MPIX_Stream stream);
int __wrap_PMPIX_Async_start(MPIX_Async_poll_function *poll, void *state, MPIX_Stream stream) {
    if (refusals-- > 0)
        return MPI_ERR_OTHER;
    polled = poll;
    return __real_PMPIX_Async_start(watch, state, stream);
}

/* Of each pair of ranks, the even one broadcasts more than the odd one has room for. */
static int data[SENT], handled, is_root, spare_data;
static MPI_Comm quiet;
static MPI_Request spare, whole;

static void tell_partner(void) {
    int rank;
    MPI_Comm_rank(quiet, &rank);
    MPI_Send(NULL, 0, MPI_BYTE, rank - 1, 5, quiet);
}

/*
 * The handler of the first error waits for an operation that it starts, and for the second error,
 * whose handler is called meanwhile and frees a request.
 */
static void handle(MPI_Comm *comm, int *error, ...) {
    (void)comm;
    EXPECT(class_of(*error) == MPI_ERR_TRUNCATE);
    if (++handled == 2) {
        EXPECT(MPI_Request_free(&spare) == MPI_SUCCESS);
        return;
    }
    EXPECT(MPI_Start(&whole) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&whole, MPI_STATUS_IGNORE) == MPI_SUCCESS && spare_data == 7);
    tell_partner();
    for (const double end = MPI_Wtime() + 20; handled < 2 && MPI_Wtime() < end;)
        probe();
    for (int i = 0; i < 100; ++i) /* until nothing is left to be done */
        probe();
}

static MPI_Request broadcast(MPI_Comm pair) {
    MPI_Request request;
    MPI_Bcast_init(data, is_root ? SENT : ROOM, MPI_INT, 0, pair, MPI_INFO_NULL, &request);
    return request;
}

/* Two errors, the second in the handler of the first; on a communicator that lives or is freed. */
static void nest(int is_freed) {
    MPI_Comm pair;
    MPI_Errhandler handler;
    int rank;
    MPI_Comm_rank(quiet, &rank);
    is_root = rank % 2 == 0;
    handled = 0;
    MPI_Comm_split(quiet, rank / 2, rank, &pair);
    MPI_Request requests[] = {broadcast(pair), broadcast(pair)};
    spare = broadcast(pair);
    spare_data = is_root ? 7 : 0;
    MPI_Bcast_init(&spare_data, 1, MPI_INT, 0, pair, MPI_INFO_NULL, &whole);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(pair, handler);
    MPI_Errhandler_free(&handler);
    if (is_freed)
        MPI_Comm_free(&pair);
    if (is_root) {
        MPI_Barrier(quiet);
        MPI_Start(&whole);
        MPI_Start(&requests[0]);
        MPI_Recv(NULL, 0, MPI_BYTE, rank + 1, 5, quiet, MPI_STATUS_IGNORE);
        MPI_Start(&requests[1]);
        MPI_Wait(&whole, MPI_STATUS_IGNORE);
    } else {
        MPI_Startall(2, requests);
        MPI_Barrier(quiet);
    }
    for (int i = 0; i < 2; ++i) {
        const int error = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        EXPECT(is_root ? error == MPI_SUCCESS : is_freed || class_of(error) == MPI_ERR_TRUNCATE);
        MPI_Request_free(&requests[i]);
    }
    EXPECT(handled == (is_root ? 0 : 2));
    MPI_Request_free(&whole);
    if (is_root)
        MPI_Request_free(&spare);
    if (!is_freed)
        MPI_Comm_free(&pair);
}

static void use_nested_handlers(void) {
    nest(0);
    nest(1);
}

static int told;

static void count_told(MPI_Comm *comm, int *error, ...) {
    (void)comm;
    (void)error;
    ++told;
}

/*
 * The MPI library refuses to call for progress, once: the next start asks again, also if it is a
 * mistake. The error handler is told.
 */
static void start_unhooked(void) {
    enum { COUNT = 20000 };
    MPI_Request requests[2];
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_told, &handler);
    MPI_Comm_set_errhandler(quiet, handler);
    MPI_Errhandler_free(&handler);
    int size;
    MPI_Comm_size(quiet, &size);
    for (int i = 0; i < 2; ++i)
        MPI_Alltoall_init(calloc((size_t)size, COUNT), COUNT, MPI_BYTE, calloc((size_t)size, COUNT),
                          COUNT, MPI_BYTE, quiet, MPI_INFO_NULL, &requests[i]);
    refusals = 1;
    EXPECT(class_of(MPI_Start(&requests[0])) == MPI_ERR_OTHER && told == 1);
    EXPECT(MPI_Start(&requests[1]) == MPI_SUCCESS);
    EXPECT(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    refusals = 1;
    EXPECT(class_of(MPI_Start(&requests[0])) == MPI_ERR_OTHER && told == 2);
    EXPECT(class_of(MPI_Start(&requests[0])) == MPI_ERR_REQUEST && told == 3);
    EXPECT(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < 2; ++i)
        MPI_Request_free(&requests[i]);
}

/*
 * The root's own block arrives where that of rank 1 leaves from. It is an error that MPI libraries
 * let pass, if the block has left by then; ranks come late, so that none has left at the start.
 */
static void scatter_over_a_block(void) {
    enum { BLOCK = 8000000 };
    int rank, size, wrong = 0;
    MPI_Request request;
    MPI_Comm_rank(quiet, &rank);
    MPI_Comm_size(quiet, &size);
    char *blocks = malloc((size_t)size * BLOCK), *own = malloc(BLOCK);
    for (int i = 0; i < size; ++i)
        memset(blocks + i * BLOCK, i, BLOCK);
    char *place = rank == 0 ? blocks + BLOCK : own;
    MPI_Scatter_init(blocks, BLOCK, MPI_BYTE, place, BLOCK, MPI_BYTE, 0, quiet, MPI_INFO_NULL,
                     &request);
    if (rank != 0)
        usleep(200000);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < BLOCK; ++i)
        wrong += place[i] != rank;
    EXPECT(wrong == 0);
    MPI_Request_free(&request);
    free(blocks);
    free(own);
}

/* How often it asks whether a message has ended. */
static int looks;

int __real_PMPIX_Request_is_complete(MPI_Request request);
int __wrap_PMPIX_Request_is_complete(MPI_Request request);
int __wrap_PMPIX_Request_is_complete(MPI_Request request) {
    ++looks;
    return __real_PMPIX_Request_is_complete(request);
}

static void make_progress(double seconds) {
    for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        probe();
}

/*
 * While nothing comes from rank 0, the others look at a message or two from each rank, and at few
 * that they send; not at the hundreds that rank 0 has for them.
 */
static void count_looks(void) {
    enum { COUNT = 1 << 20, SENDS = 16 };
    int rank, size;
    MPI_Request request;
    MPI_Comm_rank(quiet, &rank);
    MPI_Comm_size(quiet, &size);
    const size_t room = (size_t)size * COUNT;
    char *send = malloc(room), *recv = calloc(room, 1);
    for (size_t i = 0; i < room; ++i)
        send[i] = (char)(i / COUNT * 31 + i % COUNT / 7 + (size_t)rank);
    MPI_Alltoall_init(send, COUNT, MPI_BYTE, recv, COUNT, MPI_BYTE, quiet, MPI_INFO_NULL, &request);
    EXPECT(coll_comm_plans_twin(quiet) != MPI_COMM_NULL);
    if (rank != 0) {
        MPI_Start(&request);
        int few = 0; /* after what the others still send, which a busy machine delays */
        for (int tries = 0; tries < 200 && !few; ++tries) {
            polls = looks = 0;
            make_progress(0.05);
            few = polls > 0 && looks <= polls * (2 * size + SENDS);
        }
        EXPECT(few);
    }
    PMPI_Barrier(quiet);
    if (rank == 0)
        MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < room; ++i)
        if (recv[i] != (char)((size_t)rank * 31 + i % COUNT / 7 + i / COUNT))
            ++failures;
    MPI_Request_free(&request);
    free(send);
    free(recv);
}

/* Which requests are receives, by handle; and how many of them are posted, now and at most. */
enum { HANDLES = 1 << 20 };
static char is_receive[HANDLES];
static int posted, most_posted;

static char *of_handle(MPI_Request request) {
    return &is_receive[(unsigned)request % HANDLES];
}

int __real_PMPI_Recv_init_c(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                            MPI_Comm comm, MPI_Request *request);
int __wrap_PMPI_Recv_init_c(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                            MPI_Comm comm, MPI_Request *request);
int __wrap_PMPI_Recv_init_c(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                            MPI_Comm comm, MPI_Request *request) {
    const int error = __real_PMPI_Recv_init_c(data, count, type, from, tag, comm, request);
    *of_handle(*request) = 1;
    return error;
}

int __real_PMPI_Start(MPI_Request *request);
int __wrap_PMPI_Start(MPI_Request *request);
int __wrap_PMPI_Start(MPI_Request *request) {
    posted += *of_handle(*request);
    most_posted = posted > most_posted ? posted : most_posted;
    return __real_PMPI_Start(request);
}

int __real_PMPI_Wait(MPI_Request *request, MPI_Status *status);
int __wrap_PMPI_Wait(MPI_Request *request, MPI_Status *status);
int __wrap_PMPI_Wait(MPI_Request *request, MPI_Status *status) {
    posted -= *of_handle(*request);
    return __real_PMPI_Wait(request, status);
}

/* Operations with 2,900 messages for each rank; other ranks start them in other orders. */
static void post_few_of_many(void) {
    enum { OPERATIONS = 20, COUNT = 200000, FEW = 512, ALWAYS = 16 };
    int rank, size;
    MPI_Request requests[OPERATIONS];
    MPI_Comm_rank(quiet, &rank);
    MPI_Comm_size(quiet, &size);
    const size_t room = (size_t)size * COUNT;
    char *send = malloc(room), *recv = calloc(OPERATIONS, room);
    for (int i = 0; i < OPERATIONS; ++i)
        MPI_Alltoall_init(send, COUNT, MPI_BYTE, recv + (size_t)i * room, COUNT, MPI_BYTE, quiet,
                          MPI_INFO_NULL, &requests[i]);
    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < room; ++i)
            send[i] = (char)(i / COUNT * 31 + i % COUNT / 7 + (size_t)(rank + round));
        for (int i = 0; i < OPERATIONS; ++i)
            MPI_Start(&requests[(i + rank * 7) % OPERATIONS]);
        MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
        for (size_t i = 0; i < room * OPERATIONS; ++i)
            if (recv[i] != (char)((size_t)(rank * 31 + round) + i % COUNT / 7 + i % room / COUNT))
                ++failures;
    }
    EXPECT(most_posted > FEW / 2 && most_posted <= FEW + OPERATIONS * ALWAYS);
    for (int i = 0; i < OPERATIONS; ++i)
        MPI_Request_free(&requests[i]);
    free(send);
    free(recv);
}

static size_t largest;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) {
    largest = bytes > largest ? bytes : largest;
    return __real_malloc(bytes);
}

/* In place, each rank has one block for the next one of its pair; those without data are far off.
 */
static void use_far_places(void) {
    enum { COUNT = 20000 };
    int rank, size;
    MPI_Comm_rank(quiet, &rank);
    MPI_Comm_size(quiet, &size);
    int *counts = calloc((size_t)size, sizeof *counts), *places = calloc((size_t)size, sizeof(int));
    int *mine = malloc(COUNT * sizeof *mine);
    for (int peer = 0; peer < size; ++peer)
        places[peer] = peer % 2 ? -500000000 : 500000000;
    counts[rank ^ 1] = COUNT;
    places[rank ^ 1] = 0;
    for (int i = 0; i < COUNT; ++i)
        mine[i] = rank * COUNT + i;
    MPI_Request request;
    largest = 0;
    MPI_Alltoallv_init(MPI_IN_PLACE, NULL, NULL, MPI_INT, mine, counts, places, MPI_INT, quiet,
                       MPI_INFO_NULL, &request);
    EXPECT(largest < 2000000);
    EXPECT(coll_comm_plans_twin(quiet) != MPI_COMM_NULL);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; ++i)
        EXPECT(mine[i] == (rank ^ 1) * COUNT + i);
    MPI_Request_free(&request);
    free(mine);
    free(counts);
    free(places);
}

/* Communicators that were made, and data that was gathered. */
static int made, gathered, added;

int __real_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *result);
int __wrap_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *result);
int __wrap_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *result) {
    ++made;
    return __real_PMPI_Comm_create(comm, group, result);
}

int __real_PMPI_Gather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                       MPI_Datatype out_type, int root, MPI_Comm comm);
int __wrap_PMPI_Gather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                       MPI_Datatype out_type, int root, MPI_Comm comm);
int __wrap_PMPI_Gather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                       MPI_Datatype out_type, int root, MPI_Comm comm) {
    ++gathered;
    return __real_PMPI_Gather(in, count, type, out, out_count, out_type, root, comm);
}

int __real_PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm);
int __wrap_PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm);
int __wrap_PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm) {
    ++added;
    return __real_PMPI_Allreduce(in, out, count, type, op, comm);
}

enum { MUCH = 20000, LITTLE = 50 };
static int blocks[2][PEERS_MOST * (MUCH + 1)];

/* An init on a communicator of its own: an alltoall, alltoallv or allreduce of so many elements. */
static void init(char kind, int count) {
    const struct blocks uneven = blocks_of(count);
    MPI_Comm comm;
    MPI_Request request;
    int *send = blocks[0], *recv = blocks[1];
    MPI_Comm_dup(quiet, &comm);
    made = gathered = added = 0;
    if (kind == 'a')
        MPI_Alltoall_init(send, count, MPI_INT, recv, count, MPI_INT, comm, MPI_INFO_NULL,
                          &request);
    else if (kind == 'r')
        MPI_Allreduce_init(send, recv, count, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    else
        MPI_Alltoallv_init(send, uneven.counts, uneven.displacements, MPI_INT, recv, uneven.counts,
                           uneven.displacements, MPI_INT, comm, MPI_INFO_NULL, &request);
    EXPECT((coll_comm_plans_twin(comm) != MPI_COMM_NULL) == (made > 0));
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
}

/*
 * What is native makes nothing: with LIBCOLL_PERSISTENT=native whatever it is, else what is short,
 * and routines without steps: LIBCOLL_FORCE names one. Equal blocks need no gathering.
 */
static void look_at_inits(void) {
    const char *setting = getenv("LIBCOLL_PERSISTENT");
    const int is_off = setting != NULL && strcmp(setting, "native") == 0;
    init('r', MUCH);
    EXPECT(made == 0 && added == 0);
    init('a', LITTLE);
    EXPECT(made == 0 && gathered == 0 && added == 1);
    init('v', LITTLE);
    EXPECT(made == 0 && gathered == 0 && added == 1);
    init('a', MUCH);
    EXPECT((made > 0) == !is_off && gathered == 0);
}

/* A communicator for one init. */
static MPI_Comm fresh(void) {
    MPI_Comm comm;
    MPI_Comm_dup(quiet, &comm);
    return comm;
}

static void end_planned(MPI_Comm comm, MPI_Request *request) {
    EXPECT(coll_comm_plans_twin(comm) != MPI_COMM_NULL);
    MPI_Request_free(request);
    MPI_Comm_free(&comm);
}

/* The routines that LIBCOLL_FORCE names have plans, of collectives that none of the above is about.
 */
static void look_at_kinds(void) {
    int *send = blocks[0], *recv = blocks[1];
    MPI_Request request;
    MPI_Comm comm = fresh();
    MPI_Bcast_init(recv, LITTLE, MPI_INT, 1, comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Reduce_init(send, recv, LITTLE, MPI_INT, MPI_MAX, 1, comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Reduce_scatter_block_init(send, recv, LITTLE, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL,
                                  &request);
    end_planned(comm, &request);
    const struct blocks uneven = blocks_of(LITTLE);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    comm = fresh();
    MPI_Reduce_scatter_init(send, recv, uneven.counts, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL,
                            &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Gather_init(send, LITTLE, MPI_INT, recv, LITTLE, MPI_INT, 1, comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Scatter_init(send, LITTLE, MPI_INT, recv, LITTLE, MPI_INT, 1, comm, MPI_INFO_NULL,
                     &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Allgather_init(send, LITTLE, MPI_INT, recv, LITTLE, MPI_INT, comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Allgatherv_init(send, uneven.counts[rank], MPI_INT, recv, uneven.counts,
                        uneven.displacements, MPI_INT, comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Allreduce_init(send, recv, LITTLE, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
    comm = fresh();
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    end_planned(comm, &request);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
    const struct {
        const char *name;
        void (*run)(void);
    } uses[] = {{"nested", use_nested_handlers},
                {"unhooked", start_unhooked},
                {"overlap", scatter_over_a_block},
                {"places", use_far_places},
                {"inits", look_at_inits},
                {"kinds", look_at_kinds},
                {"looks", count_looks},
                {"many", post_few_of_many}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; ++i)
        if (argc == 2 && strcmp(argv[1], uses[i].name) == 0)
            uses[i].run();
    MPI_Comm_free(&quiet);
    return finish();
}
