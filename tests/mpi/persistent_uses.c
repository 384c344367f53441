/*
 * Persistent alltoalls in use: threads that wait for different ones, calls that block meanwhile,
 * blocking collectives, the names of Fortran, mistakes, error handlers, and messages that are on
 * their way when an operation fails; and types with gaps that differ.
 *
 *   persistent_uses threads|blocking|beside|fortran|mistakes|handlers|late|types|counted|barriers|
 *   "fortran barriers"|alone|"deleted types"|unfinished|"short and long"|"even and long"
 */
#include "program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "coll.h"
#include "libcoll.h"

enum { THREADS = 3, ROUNDS = 60, COUNT = 3000, BESIDE = 40 };

/* What a program of mpi_f08 calls; MPICH's handles are numbers in both languages. */
void mpi_start_f08_(int *request, int *ierror);
void mpi_startall_f08_(const int *count, int *requests, int *ierror);
void mpi_request_free_f08_(int *request, int *ierror);
void mpi_cancel_f08_(int *request, int *ierror);
void mpi_barrier_init_f08_(const int *comm, const int *info, int *request, int *ierror);

struct exchange {
    MPI_Request request;
    int rank, size, wrong;
    int *send, *recv;
};

static struct exchange make(MPI_Comm comm) {
    struct exchange one = {.wrong = 0};
    MPI_Comm_rank(comm, &one.rank);
    MPI_Comm_size(comm, &one.size);
    one.send = malloc(sizeof(int) * COUNT * (size_t)one.size);
    one.recv = malloc(sizeof(int) * COUNT * (size_t)one.size);
    MPI_Alltoall_init(one.send, COUNT, MPI_INT, one.recv, COUNT, MPI_INT, comm, MPI_INFO_NULL,
                      &one.request);
    return one;
}

static void fill(struct exchange *one, int round) {
    for (int i = 0; i < COUNT * one->size; ++i) {
        one->send[i] = one->rank * 1000 + i / COUNT + round;
        one->recv[i] = -1;
    }
}

static void check(struct exchange *one, int round) {
    for (int i = 0; i < COUNT * one->size; ++i)
        one->wrong += one->recv[i] != i / COUNT * 1000 + one->rank + round;
}

static void destroy(struct exchange *one) {
    EXPECT(one->wrong == 0);
    EXPECT(MPI_Request_free(&one->request) == MPI_SUCCESS);
    free(one->send);
    free(one->recv);
}

static void *carry_out(void *argument) {
    struct exchange *one = argument;
    for (int round = 0; round < ROUNDS; ++round) {
        fill(one, round);
        MPI_Start(&one->request);
        MPI_Wait(&one->request, MPI_STATUS_IGNORE);
        check(one, round);
    }
    return NULL;
}

/* Each thread has an operation of its own, all on one communicator. */
static void use_threads(void) {
    pthread_t threads[THREADS];
    struct exchange exchanges[THREADS];
    for (int i = 0; i < THREADS; ++i)
        exchanges[i] = make(MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; ++i)
        EXPECT(pthread_create(&threads[i], NULL, carry_out, &exchanges[i]) == 0);
    for (int i = 0; i < THREADS; ++i)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; ++i)
        destroy(&exchanges[i]);
}

/*
 * All but rank 0 have started and then block in other functions, until rank 0 has ended its
 * operation: it ends only if these functions carry the operation on.
 */
static void block(void) {
    struct exchange one = make(MPI_COMM_WORLD);
    for (int round = 0; round < 6; ++round) {
        int token = 0;
        fill(&one, round);
        MPI_Start(&one.request);
        if (one.rank == 0)
            MPI_Wait(&one.request, MPI_STATUS_IGNORE);
        if (round % 3 == 0)
            PMPI_Barrier(MPI_COMM_WORLD);
        else if (round % 3 == 1)
            PMPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
        else if (one.rank != 0)
            MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            for (int to = 1; to < one.size; ++to)
                MPI_Send(&token, 1, MPI_INT, to, 5, MPI_COMM_WORLD);
        MPI_Wait(&one.request, MPI_STATUS_IGNORE);
        check(&one, round);
    }
    destroy(&one);
}

/* Whether the routine that LIBCOLL_FORCE names serves a collective: "COLLECTIVE=ROUTINE". */
static int is_forced(const char *collective, MPI_Aint bytes) {
    char entry[100];
    const char *forced = getenv("LIBCOLL_FORCE");
    snprintf(entry, sizeof entry, "%s=%s", collective,
             libcoll_choice(collective, bytes, MPI_COMM_WORLD));
    return forced != NULL && strstr(forced, entry) != NULL;
}

/* Blocking collectives of the library, between start and completion of two operations. */
static void use_blocking_collectives(void) {
    enum { NUMBERS = 600 };
    struct exchange exchanges[] = {make(MPI_COMM_WORLD), make(MPI_COMM_WORLD)};
    const int size = exchanges[0].size, rank = exchanges[0].rank;
    unsigned state = (unsigned)rank + 1;
    int mine[NUMBERS], sums[NUMBERS];
    EXPECT(is_forced("allreduce", sizeof mine) && is_forced("barrier", 0));
    for (int round = 0; round < BESIDE; ++round) {
        for (int i = 0; i < 2; ++i) {
            fill(&exchanges[i], round);
            if (next_random(&state) % 2)
                usleep(next_random(&state) % 500);
            MPI_Start(&exchanges[i].request);
            for (int k = 0; k < NUMBERS; ++k)
                mine[k] = rank + k + round;
            MPI_Allreduce(mine, sums, NUMBERS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            for (int k = 0; k < NUMBERS; ++k)
                EXPECT(sums[k] == size * (k + round) + size * (size - 1) / 2);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        for (int i = 0; i < 2; ++i) {
            MPI_Wait(&exchanges[i].request, MPI_STATUS_IGNORE);
            check(&exchanges[i], round);
        }
    }
    destroy(&exchanges[0]);
    destroy(&exchanges[1]);
}

static void use_fortran(void) {
    const int two = 2;
    struct exchange exchanges[] = {make(MPI_COMM_WORLD), make(MPI_COMM_WORLD)};
    for (int round = 0; round < 4; ++round) {
        int handles[] = {exchanges[0].request, exchanges[1].request}, error = -1;
        fill(&exchanges[0], round);
        fill(&exchanges[1], round);
        if (round % 2)
            mpi_startall_f08_(&two, handles, &error);
        else
            for (int i = 0; i < two; ++i)
                mpi_start_f08_(&handles[i], &error);
        EXPECT(error == MPI_SUCCESS);
        PMPI_Waitall(two, handles, MPI_STATUSES_IGNORE); /* as MPI_Waitall of mpi_f08 */
        check(&exchanges[0], round);
        check(&exchanges[1], round);
    }
    int handle = exchanges[1].request, error = -1;
    mpi_request_free_f08_(&handle, &error);
    EXPECT(error == MPI_SUCCESS && handle == MPI_REQUEST_NULL);
    EXPECT(exchanges[1].wrong == 0);
    free(exchanges[1].send);
    free(exchanges[1].recv);
    destroy(&exchanges[0]);
}

/* Some ranks call from Fortran, the others from C. */
static void use_barriers_of_fortran(void) {
    const int comm = MPI_COMM_WORLD, info = MPI_INFO_NULL;
    int rank, handle = MPI_REQUEST_NULL, error = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank % 2)
        mpi_barrier_init_f08_(&comm, &info, &handle, &error);
    else
        MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &handle);
    EXPECT(error == MPI_SUCCESS && coll_comm_plans_twin(MPI_COMM_WORLD) != MPI_COMM_NULL);
    for (int round = 0; round < 4; ++round) {
        MPI_Start(&handle);
        MPI_Wait(&handle, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&handle);
}

static int class_of(int error) {
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    return class;
}

static void make_progress(double seconds) {
    for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

static int handled;

static void handle(MPI_Comm *comm, int *error, ...) {
    (void)comm;
    (void)error;
    ++handled;
}

/* Whether a round has ended, within seconds, without a request that could be waited for. */
static int ends(struct exchange *one, int round) {
    for (int tries = 0; tries < 500; ++tries) {
        one->wrong = 0;
        check(one, round);
        if (one->wrong == 0)
            return 1;
        make_progress(0.02);
    }
    return 0;
}

/*
 * Mistakes are errors for the caller, and the operation goes on. One that is freed while it is
 * active, which MPI does not allow, still ends, for the others. All stay until it has: MPICH may
 * not send in MPI_Finalize what a rank there still waits for.
 */
static void make_mistakes(void) {
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    struct exchange one = make(comm);
    EXPECT(class_of(MPI_Cancel(&one.request)) == MPI_ERR_REQUEST && handled == 1);
    fill(&one, 1);
    MPI_Start(&one.request);
    EXPECT(class_of(MPI_Start(&one.request)) == MPI_ERR_REQUEST && handled == 2);
    make_progress(0.2);
    for (int tries = 0; tries < 3; ++tries) /* it may have ended, but nobody has waited for it */
        EXPECT(class_of(MPI_Start(&one.request)) == MPI_ERR_REQUEST && handled == 3 + tries);
    MPI_Wait(&one.request, MPI_STATUS_IGNORE);
    check(&one, 1);
    EXPECT(one.wrong == 0);
    fill(&one, 2);
    MPI_Start(&one.request);
    MPI_Request copy = one.request;
    EXPECT(MPI_Request_free(&one.request) == MPI_SUCCESS && copy != MPI_REQUEST_NULL);
    EXPECT(ends(&one, 2));
    make_progress(0.1);
    PMPI_Barrier(comm);
    free(one.send);
    free(one.recv);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

static MPI_Request spare;

/* What an error handler may do with requests that no call waits for. */
static void use_spare(MPI_Comm *comm, int *error, ...) {
    (void)comm;
    EXPECT(class_of(*error) == MPI_ERR_TRUNCATE);
    if (handled++ > 0)
        return;
    EXPECT(class_of(MPI_Cancel(&spare)) == MPI_ERR_REQUEST);
    EXPECT(MPI_Request_free(&spare) == MPI_SUCCESS && spare == MPI_REQUEST_NULL);
}

static void set_handler(MPI_Comm comm, MPI_Comm_errhandler_function *function) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
}

/*
 * A broadcast of more than its receiver has room for, twice: while its communicator lives, and when
 * that has been freed and others have come.
 */
static void handle_errors(void) {
    enum { SENT = 8, ROOM = 4, LATER = 4 };
    MPI_Comm pair, quiet, later[LATER];
    int data[SENT] = {0}, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
    for (int is_freed = 0; is_freed < 2; ++is_freed) {
        const int receives = rank % 2;
        MPI_Request request;
        struct exchange another = make(quiet);
        spare = another.request;
        MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
        MPI_Bcast_init(data, receives ? ROOM : SENT, MPI_INT, 0, pair, MPI_INFO_NULL, &request);
        set_handler(pair, use_spare);
        if (is_freed)
            MPI_Comm_free(&pair);
        for (int i = 0; i < LATER; ++i) {
            MPI_Comm_dup(quiet, &later[i]);
            set_handler(later[i], handle);
        }
        handled = 0;
        int error = MPI_Start(&request);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (error == MPI_SUCCESS)
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT((error != MPI_SUCCESS) == receives && handled == receives);
        EXPECT((spare == MPI_REQUEST_NULL) == receives);
        if (receives) /* it has failed, and cannot be started again */
            EXPECT(class_of(MPI_Start(&request)) == MPI_ERR_TRUNCATE && handled == 2);
        EXPECT(MPI_Request_free(&request) == MPI_SUCCESS);
        if (!receives)
            MPI_Request_free(&spare);
        free(another.send);
        free(another.recv);
        for (int i = 0; i < LATER; ++i)
            MPI_Comm_free(&later[i]);
        if (!is_freed)
            MPI_Comm_free(&pair);
    }
    MPI_Comm_free(&quiet);
}

/*
 * An allreduce by recursive doubling of which ranks 0 and 3 have less room than comes from rank 1,
 * while the message from rank 2 to rank 0 is on its way: rank 2 has offered it and then sleeps.
 * Rank 0 frees its request as soon as it fails, and what comes must not go to freed memory. Rank 0
 * owes rank 2 a message, which the test sends, so that all come to their end.
 */
static void fail_with_late_messages(void) {
    enum { MOST = 1 << 20, LESS = MOST / 2 };
    MPI_Comm comm;
    MPI_Request request;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    EXPECT(is_forced("allreduce", LESS * sizeof(int)));
    int *in = calloc(MOST, sizeof *in), *out = calloc(MOST, sizeof *out);
    MPI_Allreduce_init(in, out, rank == 1 ? MOST : LESS, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                       &request);
    const MPI_Comm inside = coll_comm_plans_twin(comm);
    EXPECT(inside != MPI_COMM_NULL);
    if (rank == 0)
        make_progress(0.5);
    MPI_Start(&request);
    if (rank == 2) {
        make_progress(0.5);
        usleep(1000000);
    }
    const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(class_of(error) == (rank % 3 == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    EXPECT(MPI_Request_free(&request) == MPI_SUCCESS);
    if (rank == 0)
        MPI_Send(in, LESS, MPI_INT, 2, 0, inside);
    make_progress(1.5);
    PMPI_Barrier(MPI_COMM_WORLD);
    free(in);
    free(out);
    MPI_Comm_free(&comm);
}

static MPI_Datatype double_and_int(MPI_Aint of_double, MPI_Aint of_int, MPI_Aint extent) {
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {of_double, of_int};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    MPI_Datatype inner, type;
    MPI_Type_create_struct(2, lengths, places, types, &inner);
    MPI_Type_create_resized(inner, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&inner);
    return type;
}

enum { ELEMENTS = 3000, EXTENT = 24 };

/* The blocks for a rank and from it, as bytes on their way. */
static void exchange_packed(const unsigned char *send, MPI_Datatype send_type, unsigned char *recv,
                            MPI_Datatype recv_type, int peer) {
    enum { BYTES = ELEMENTS * 12 };
    static char out[BYTES], in[BYTES];
    MPI_Aint low, from, to;
    int position = 0;
    MPI_Type_get_extent(send_type, &low, &from);
    MPI_Type_get_extent(recv_type, &low, &to);
    MPI_Pack(send + peer * ELEMENTS * from, ELEMENTS, send_type, out, BYTES, &position,
             MPI_COMM_WORLD);
    MPI_Sendrecv(out, BYTES, MPI_PACKED, peer, 7, in, BYTES, MPI_PACKED, peer, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    position = 0;
    MPI_Unpack(in, BYTES, &position, recv + peer * ELEMENTS * to, ELEMENTS, recv_type,
               MPI_COMM_WORLD);
}

/* Both ends have the same data with gaps in other places. Types are freed before the request. */
static void use_two_types(void) {
    struct {
        MPI_Datatype send, recv;
    } pairs[] = {{MPI_DOUBLE_INT, double_and_int(8, 0, 16)},
                 {double_and_int(0, 20, EXTENT), MPI_DOUBLE_INT},
                 {double_and_int(0, 8, 12), double_and_int(0, 20, EXTENT)},
                 {MPI_DOUBLE_INT, MPI_DOUBLE_INT}};
    int size, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const size_t room = (size_t)size * ELEMENTS * EXTENT;
    unsigned char *send = malloc(room), *recv = malloc(room), *expected = malloc(room);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        MPI_Request request;
        for (size_t k = 0; k < room; ++k)
            send[k] = (unsigned char)(k * 7 + k / 251 + (size_t)rank);
        memset(recv, 0x55, room);
        memset(expected, 0x55, room);
        for (int peer = 0; peer < size; ++peer)
            exchange_packed(send, pairs[i].send, expected, pairs[i].recv, peer);
        MPI_Alltoall_init(send, ELEMENTS, pairs[i].send, recv, ELEMENTS, pairs[i].recv,
                          MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        if (pairs[i].send != MPI_DOUBLE_INT)
            MPI_Type_free(&pairs[i].send);
        if (pairs[i].recv != MPI_DOUBLE_INT)
            MPI_Type_free(&pairs[i].recv);
        for (int round = 0; round < 2; ++round) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            EXPECT(memcmp(recv, expected, room) == 0);
            memset(recv, 0x55, room);
        }
        MPI_Request_free(&request);
    }
    free(send);
    free(recv);
    free(expected);
}

/* The same for all ranks of a machine. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* In each round another rank starts late, and none may leave before. */
static void use_barriers(void) {
    MPI_Request request;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < 4 * size; ++round) {
        double last;
        if (round % size == rank)
            usleep(5000);
        const double came = now();
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const double left = now();
        PMPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        EXPECT(left >= last);
    }
    MPI_Request_free(&request);
}

/* Three starts of an allreduce of 400 bytes, two of a broadcast of 8 bytes; blocking calls. */
static void start_some(void) {
    int from[100] = {0}, to[100];
    double one = 1;
    MPI_Request sum, word;
    MPI_Allreduce_init(from, to, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum);
    MPI_Bcast_init(&one, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &word);
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&sum);
        MPI_Wait(&sum, MPI_STATUS_IGNORE);
        if (i > 0)
            continue;
        MPI_Request both[2] = {word, MPI_REQUEST_NULL};
        MPI_Start(&word);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Startall(1, &word);
        MPI_Wait(&word, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&sum);
    MPI_Request_free(&word);
    MPI_Allreduce(from, to, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Alltoalls of 32 KiB and of 128 KiB. */
static void exchange_short_and_long(void) {
    enum { SHORT = 32768, LONG = 131072 };
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *from = calloc((size_t)size, LONG), *to = calloc((size_t)size, LONG);
    for (int bytes = SHORT; bytes <= LONG; bytes += LONG - SHORT) {
        MPI_Request request;
        MPI_Alltoall_init(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    free(from);
    free(to);
}

/* Allgathervs of even blocks, of 600 bytes in all on six ranks, and with a long one, of 1,500. */
static void gather_even_and_long(void) {
    enum { EVEN = 100, LONG = 1000 };
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *counts = calloc((size_t)size, sizeof *counts),
        *starts = calloc((size_t)size, sizeof *starts);
    char *from = calloc(LONG, 1), *to = calloc((size_t)size, LONG);
    for (int last = EVEN; last <= LONG; last += LONG - EVEN) {
        MPI_Request request;
        for (int i = 0; i < size; ++i) {
            counts[i] = i == size - 1 ? last : EVEN;
            starts[i] = i * EVEN;
        }
        for (int i = 0; i < counts[rank]; ++i)
            from[i] = (char)(rank + i);
        MPI_Allgatherv_init(from, counts[rank], MPI_BYTE, to, counts, starts, MPI_BYTE,
                            MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        for (int i = 0; i < size; ++i)
            for (int k = 0; k < counts[i]; ++k)
                EXPECT(to[starts[i] + k] == (char)(i + k));
    }
    free(counts);
    free(starts);
    free(from);
    free(to);
}

/* Wait until the other rank has got so far, or for ten seconds, without a call of MPI. */
static int await_start(const atomic_int *started, int number) {
    const double begin = now();
    while (atomic_load(started) < number && now() - begin < 10)
        usleep(100);
    return atomic_load(started) >= number;
}

/*
 * A start is local: it does not wait until the other rank makes progress. Ranks of a host have few
 * cells of memory for what is on its way to all others, and the broadcasts fill more or fewer.
 */
static void start_alone(void) {
    enum { STEP = 16384, LONGEST = 68 };
    char *data = calloc(LONGEST, STEP);
    atomic_int *started;
    MPI_Comm pair;
    MPI_Win window;
    MPI_Aint size;
    int rank, unit;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    MPI_Win_allocate_shared(sizeof *started, 1, MPI_INFO_NULL, pair, &started, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &started);
    for (int number = 1; number <= LONGEST; ++number) {
        MPI_Request request;
        MPI_Bcast_init(data, number * STEP, MPI_BYTE, 0, pair, MPI_INFO_NULL, &request);
        MPI_Barrier(pair);
        if (rank % 2 != 0)
            EXPECT(await_start(started, number));
        MPI_Start(&request);
        if (rank % 2 == 0)
            atomic_store(started, number);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    MPI_Win_free(&window);
    MPI_Comm_free(&pair);
    free(data);
}

/* All wait for rank 0, which never comes: a mistake, by which MPI_Finalize must not hang. */
static void leave_unfinished(void) {
    static int data;
    int rank;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast_init(&data, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (rank != 0)
        MPI_Start(&request);
}

static MPI_Request kept;

/* With an attribute of a datatype, the application kept a request. */
static int free_kept(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type;
    (void)key;
    (void)value;
    (void)extra;
    EXPECT(MPI_Request_free(&kept) == MPI_SUCCESS);
    return MPI_SUCCESS;
}

/* The last use of a type is in a plan; if it `starts`, it is freed while active. */
static void delete_type(int starts) {
    int rank, size, key, token = 0;
    MPI_Request exchange, barrier;
    MPI_Datatype spaced;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *send = calloc(2 * (size_t)size * COUNT, sizeof *send);
    int *recv = calloc(2 * (size_t)size * COUNT, sizeof *recv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, free_kept, &key, NULL);
    MPI_Type_set_attr(spaced, key, NULL);
    MPI_Send_init(&token, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &kept);
    MPI_Alltoall_init(send, COUNT, spaced, recv, COUNT, spaced, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &exchange);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
    MPI_Type_free(&spaced);
    MPI_Type_free_keyval(&key);
    EXPECT(kept != MPI_REQUEST_NULL);
    if (starts)
        MPI_Start(&exchange);
    MPI_Request_free(&exchange);
    for (int i = 0; i < 100; ++i)
        PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT(kept == MPI_REQUEST_NULL);
    MPI_Request_free(&barrier);
    free(send);
    free(recv);
}

static void delete_types(void) {
    delete_type(0);
    delete_type(1);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(argc == 2 && provided == MPI_THREAD_MULTIPLE);
    const struct {
        const char *name;
        void (*run)(void);
    } uses[] = {{"threads", use_threads},
                {"blocking", block},
                {"beside", use_blocking_collectives},
                {"fortran", use_fortran},
                {"fortran barriers", use_barriers_of_fortran},
                {"mistakes", make_mistakes},
                {"handlers", handle_errors},
                {"late", fail_with_late_messages},
                {"types", use_two_types},
                {"counted", start_some},
                {"barriers", use_barriers},
                {"alone", start_alone},
                {"deleted types", delete_types},
                {"unfinished", leave_unfinished},
                {"short and long", exchange_short_and_long},
                {"even and long", gather_even_and_long}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; ++i)
        if (argc == 2 && strcmp(argv[1], uses[i].name) == 0)
            uses[i].run();
    (void)mpi_cancel_f08_;
    return finish();
}
