/*
 * The benchmark session: the MPI library's own routines and those behind the MPI_ names (of
 * libcoll, where it is preloaded) timed in turn in the same job. Commands on the standard
 * input of rank 0, one a line; answers in JSON, one object a line.
 *
 *   hello
 *   compare COLLECTIVE BYTES CALLS REPETITIONS
 *   quit
 *
 * A repetition is an untimed call and then CALLS calls, each after a barrier of our own. The time
 * of a call is the maximum over the ranks; that of a repetition is the mean of its calls.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve.h"
#include "timing.h"

enum { NATIVE, TUNED, SIDES };

/* What a call works on: `bytes` bytes, or as many as `count` data of a type to be reduced. */
struct message {
    void *send, *recv;
    int bytes, count;
    MPI_Datatype type;
    MPI_Op op;
    int *counts, *places; /* of blocks that may differ in length */
};

typedef int collective_call(const struct message *m);

/* The native and the tuned call of a collective with the same arguments. */
#define BOTH(Name, ...)                                                                            \
    static int native_##Name(const struct message *m) {                                            \
        (void)m;                                                                                   \
        return PMPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);                                           \
    }                                                                                              \
    static int tuned_##Name(const struct message *m) {                                             \
        (void)m;                                                                                   \
        return MPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);                                            \
    }

#define BLOCK(buffer) m->buffer, m->bytes, MPI_BYTE
#define BLOCKS(buffer) m->buffer, m->counts, m->places, MPI_BYTE
#define OPERANDS(count) m->send, m->recv, count, m->type, m->op

BOTH(Allgather, BLOCK(send), BLOCK(recv))
BOTH(Allgatherv, m->send, m->counts[world_rank], MPI_BYTE, BLOCKS(recv))
BOTH(Allreduce, OPERANDS(m->count))
BOTH(Alltoall, BLOCK(send), BLOCK(recv))
BOTH(Alltoallv, BLOCKS(send), BLOCKS(recv))
BOTH(Bcast, BLOCK(recv), 0)
BOTH(Gather, BLOCK(send), BLOCK(recv), 0)
BOTH(Reduce, OPERANDS(m->count), 0)
BOTH(Reduce_scatter, OPERANDS(m->counts))
BOTH(Reduce_scatter_block, OPERANDS(m->count))
BOTH(Scatter, BLOCK(send), BLOCK(recv), 0)

static int native_Barrier(const struct message *m) {
    (void)m;
    return PMPI_Barrier(MPI_COMM_WORLD);
}

static int tuned_Barrier(const struct message *m) {
    (void)m;
    return MPI_Barrier(MPI_COMM_WORLD);
}

/* Whether a message's size is that of all its blocks together, and whether it is reduced. */
enum { PER_RANK = 0, WHOLE = 1, REDUCED = 2 };

static const struct {
    const char *name;
    int traits;
    collective_call *calls[SIDES];
} collectives[] = {
    {"allgather", PER_RANK, {native_Allgather, tuned_Allgather}},
    {"allgatherv", WHOLE, {native_Allgatherv, tuned_Allgatherv}},
    {"allreduce", WHOLE | REDUCED, {native_Allreduce, tuned_Allreduce}},
    {"alltoall", PER_RANK, {native_Alltoall, tuned_Alltoall}},
    {"alltoallv", PER_RANK, {native_Alltoallv, tuned_Alltoallv}},
    {"barrier", WHOLE, {native_Barrier, tuned_Barrier}},
    {"bcast", WHOLE, {native_Bcast, tuned_Bcast}},
    {"gather", PER_RANK, {native_Gather, tuned_Gather}},
    {"reduce", WHOLE | REDUCED, {native_Reduce, tuned_Reduce}},
    {"reduce_scatter", WHOLE | REDUCED, {native_Reduce_scatter, tuned_Reduce_scatter}},
    {"reduce_scatter_block", REDUCED, {native_Reduce_scatter_block, tuned_Reduce_scatter_block}},
    {"scatter", PER_RANK, {native_Scatter, tuned_Scatter}},
};

enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

/*
 * One untimed call comes first: TCP connections remember the traffic before (congestion windows,
 * losses), and a routine is to meet the network as it leaves it itself, not as the other did.
 */
static void repeat(collective_call *call, const struct message *message, int calls,
                   double *seconds) {
    timing_barrier(control);
    call(message);
    for (int i = 0; i < calls; ++i) {
        timing_barrier(control);
        const double start = PMPI_Wtime();
        call(message);
        seconds[i] = PMPI_Wtime() - start;
    }
}

/* Data of 8 bytes each where the size allows; blocks as even as can be, one after the other. */
static struct message make_message(int traits, int bytes) {
    const int real = (traits & REDUCED) && bytes % 8 == 0;
    const size_t room = (size_t)((traits & WHOLE) ? 1 : world_size) * (size_t)bytes + 1;
    struct message m = {.send = calloc(room, 1),
                        .recv = calloc(room, 1),
                        .bytes = bytes,
                        .count = real ? bytes / 8 : bytes,
                        .type = real ? MPI_DOUBLE : MPI_BYTE,
                        .op = real ? MPI_SUM : MPI_BXOR,
                        .counts = calloc((size_t)world_size, sizeof(int)),
                        .places = calloc((size_t)world_size, sizeof(int))};
    if (m.send == NULL || m.recv == NULL || m.counts == NULL || m.places == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    for (int rank = 0; rank < world_size; ++rank) {
        const long long start = (long long)m.count * rank, end = start + m.count;
        m.places[rank] = (int)((traits & WHOLE) ? start / world_size : start);
        m.counts[rank] = (int)((traits & WHOLE) ? end / world_size : end) - m.places[rank];
    }
    return m;
}

static void free_message(struct message *m) {
    free(m->send);
    free(m->recv);
    free(m->counts);
    free(m->places);
}

/* Native and tuned take turns, and turns in who begins. */
static void run(int which, int bytes, int calls, int repetitions, double *seconds) {
    struct message message = make_message(collectives[which].traits, bytes);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        for (int turn = 0; turn < SIDES; ++turn) {
            const int side = (repetition + turn) % SIDES;
            repeat(collectives[which].calls[side], &message, calls,
                   &seconds[(side * repetitions + repetition) * calls]);
        }
    }
    free_message(&message);
}

static void print_seconds(const char *name, const double *seconds, int repetitions) {
    printf("\"%s\": [", name);
    for (int i = 0; i < repetitions; ++i)
        printf("%s%.9f", i == 0 ? "" : ", ", seconds[i]);
    printf("]");
}

/* Which algorithm of the preloaded library serves; "native" where there is none. */
static const char *choice_of(const char *name, int bytes) {
    const char *(*choice)(const char *, MPI_Aint, MPI_Comm);
    *(void **)&choice = dlsym(RTLD_DEFAULT, "libcoll_choice");
    const char *found = choice == NULL ? NULL : choice(name, bytes, MPI_COMM_WORLD);
    return found == NULL ? "native" : found;
}

static int compare(const char *line) {
    char name[64];
    int bytes, calls, repetitions, which = 0;
    if (sscanf(line, "compare %63s %d %d %d", name, &bytes, &calls, &repetitions) != 4 ||
        bytes < 0 || calls < 1 || repetitions < 1)
        which = COLLECTIVES;
    while (which < COLLECTIVES && strcmp(collectives[which].name, name) != 0)
        ++which;
    if (which == COLLECTIVES) {
        complain("not a comparison", "see the head of bench.c");
        return MPI_SUCCESS;
    }
    double *seconds = calloc((size_t)repetitions * (size_t)calls * SIDES, sizeof *seconds);
    double *means = calloc((size_t)repetitions * SIDES, sizeof *means);
    if (seconds == NULL || means == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    run(which, bytes, calls, repetitions, seconds);
    const char *choice = choice_of(name, bytes);
    const int error = timing_reduce(seconds, repetitions * SIDES, calls, means, control);
    if (error == MPI_SUCCESS && world_rank == 0) {
        printf("{\"routine\": \"%s\", ", choice);
        print_seconds("native", means, repetitions);
        printf(", ");
        print_seconds("tuned", means + repetitions, repetitions);
        printf("}\n");
    }
    free(seconds);
    free(means);
    return error;
}

static int hello(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    const int error = describe_mpi(version);
    if (error == MPI_SUCCESS && world_rank == 0)
        printf("{\"ranks\": %d, \"mpi\": \"%s\", \"preloaded\": %s}\n", world_size, version,
               dlsym(RTLD_DEFAULT, "libcoll_choice") == NULL ? "false" : "true");
    return error;
}

static int obey(char *line) {
    return strncmp(line, "hello", 5) == 0 ? hello() : compare(line);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    run_session(obey);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
