/*
 * The benchmark session: times the MPI library's own routines and the routines behind the MPI_
 * names (libcoll's, if it is preloaded) in turn in the same job. Rank 0 reads commands from
 * standard input, one per line, and answers in JSON, one object per line.
 *
 *   hello
 *   environment
 *   compare COLLECTIVE BYTES SETTLE CALLS REPETITIONS
 *   quit
 *
 * A repetition is CALLS calls, each after a barrier of our own; if SETTLE is 1, an untimed call
 * comes first. The time of a call is the maximum over the ranks; the time of a repetition is the
 * mean of its calls.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "message.h"
#include "metric.h"
#include "serve.h"
#include "timing.h"

/* The arguments of a comparison. */
struct asked {
    int bytes, settle, calls, repetitions;
};

/*
 * An untimed call may come first: TCP connections remember earlier traffic (congestion windows,
 * losses), and a routine should meet the network as it leaves it itself, not as the other one did.
 */
static void repeat(const struct collective *collective, int side, const struct message *message,
                   const struct asked *asked, double *seconds) {
    if (asked->settle) {
        timing_barrier(control);
        make_call(collective, message, side);
    }
    for (int i = 0; i < asked->calls; ++i) {
        timing_barrier(control);
        const double start = PMPI_Wtime();
        make_call(collective, message, side);
        seconds[i] = PMPI_Wtime() - start;
    }
}

/* Native and tuned take turns, and also take turns at going first. */
static void run(const struct collective *collective, const struct asked *asked, double *seconds) {
    struct message message = make_message(collective, asked->bytes, world_rank, world_size);
    for (int repetition = 0; repetition < asked->repetitions; ++repetition) {
        for (int turn = 0; turn < SIDES; ++turn) {
            const int side = (repetition + turn) % SIDES;
            repeat(collective, side, &message, asked,
                   &seconds[(side * asked->repetitions + repetition) * asked->calls]);
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

/* The algorithm of the preloaded library that serves; "native" if there is none. */
static const char *choice_of(const char *name, int bytes) {
    const char *(*choice)(const char *, MPI_Aint, MPI_Comm);
    *(void **)&choice = dlsym(RTLD_DEFAULT, "libcoll_choice");
    const char *found = choice == NULL ? NULL : choice(name, bytes, MPI_COMM_WORLD);
    return found == NULL ? "native" : found;
}

static int compare(const char *line) {
    char name[64];
    int which = 0;
    struct asked asked;
    if (sscanf(line, "compare %63s %d %d %d %d", name, &asked.bytes, &asked.settle, &asked.calls,
               &asked.repetitions) != 5 ||
        asked.bytes < 0 || asked.calls < 1 || asked.repetitions < 1)
        which = COLLECTIVES;
    while (which < COLLECTIVES && strcmp(collectives[which].name, name) != 0)
        ++which;
    if (which == COLLECTIVES) {
        complain("not a comparison", "see the head of bench.c");
        return MPI_SUCCESS;
    }
    const int times = asked.repetitions * SIDES;
    double *seconds = calloc((size_t)times * (size_t)asked.calls, sizeof *seconds);
    double *means = calloc((size_t)times, sizeof *means);
    if (seconds == NULL || means == NULL)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    run(&collectives[which], &asked, seconds);
    const char *choice = choice_of(name, asked.bytes);
    const int error = metric_reduce(METRIC_SLOWEST, seconds, times, asked.calls, means, control);
    if (error == MPI_SUCCESS && world_rank == 0) {
        printf("{\"routine\": \"%s\", ", choice);
        print_seconds("native", means, asked.repetitions);
        printf(", ");
        print_seconds("tuned", means + asked.repetitions, asked.repetitions);
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
    if (strncmp(line, "environment", 11) == 0)
        return print_environment(control);
    return strncmp(line, "hello", 5) == 0 ? hello() : compare(line);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    run_session(obey);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
