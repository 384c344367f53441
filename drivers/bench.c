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

#include "calls.h"
#include "serve.h"
#include "timing.h"

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

/* Native and tuned take turns, and turns in who begins. */
static void run(int which, int bytes, int calls, int repetitions, double *seconds) {
    struct message message = make_message(collectives[which].traits, bytes, world_rank, world_size);
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
