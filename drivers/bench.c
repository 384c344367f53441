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

typedef int collective_call(void *send, void *recv, int bytes);

static int native_alltoall(void *send, void *recv, int bytes) {
    return PMPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int tuned_alltoall(void *send, void *recv, int bytes) {
    return MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int native_allgather(void *send, void *recv, int bytes) {
    return PMPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int tuned_allgather(void *send, void *recv, int bytes) {
    return MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int native_bcast(void *send, void *recv, int bytes) {
    (void)recv;
    return PMPI_Bcast(send, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int tuned_bcast(void *send, void *recv, int bytes) {
    (void)recv;
    return MPI_Bcast(send, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    collective_call *calls[SIDES];
} collectives[] = {
    {"allgather", {native_allgather, tuned_allgather}},
    {"alltoall", {native_alltoall, tuned_alltoall}},
    {"bcast", {native_bcast, tuned_bcast}},
};

enum { COLLECTIVES = sizeof collectives / sizeof collectives[0] };

/*
 * One untimed call comes first: TCP connections remember the traffic before (congestion windows,
 * losses), and a routine is to meet the network as it leaves it itself, not as the other did.
 */
static void repeat(collective_call *call, void *send, void *recv, int bytes, int calls,
                   double *seconds) {
    timing_barrier(control);
    call(send, recv, bytes);
    for (int i = 0; i < calls; ++i) {
        timing_barrier(control);
        const double start = PMPI_Wtime();
        call(send, recv, bytes);
        seconds[i] = PMPI_Wtime() - start;
    }
}

/* Native and tuned take turns, and turns in who begins. */
static void run(int which, int bytes, int calls, int repetitions, double *seconds) {
    const size_t room = (size_t)world_size * (size_t)bytes + 1;
    char *send = calloc(room, 1), *recv = calloc(room, 1);
    if (send == NULL || recv == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        for (int turn = 0; turn < SIDES; ++turn) {
            const int side = (repetition + turn) % SIDES;
            repeat(collectives[which].calls[side], send, recv, bytes, calls,
                   &seconds[(side * repetitions + repetition) * calls]);
        }
    }
    free(send);
    free(recv);
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
    return choice == NULL ? "native" : choice(name, bytes, MPI_COMM_WORLD);
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
