/*
 * A micro-benchmark in the manner of Faraj 2006, Figs. 4.20 and 4.26: processes rest, some come
 * late, then all call a collective. Prints what each call took, as JSON.
 *
 *   calls COLLECTIVE BYTES CALLS [NAME=VALUE]...   of allgather, allreduce, alltoall, and
 *                                                  alltoallv with even blocks
 *
 *   rest=MS       each process sleeps so many milliseconds before a call
 *   late=MS       and up to so many more, drawn anew for each process and call
 *   factor=MAX    Fig. 4.20: each process draws r from 0 to MAX - 1, once; before each call there
 *                 is a barrier, then it sleeps r times message=MS
 *   seed=N        of these draws
 *   beside=BYTES  with each call there is one of so many bytes, before or behind it by turns
 *   then=BYTES    the size in the second half of the calls; likewise then_late=MS
 *   at=CALL       before this call, process 0 carries out command=COMMAND, once
 *
 * `elapsed` is the mean over the processes, `last` the time from the last arrival to the last exit,
 * in seconds; the latter needs processes that share a clock, as those of one machine do. With
 * factor=MAX, `delays` are the milliseconds that each process was to sleep before each call: those
 * of process 0, then those of process 1, and so on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

struct options {
    const char *collective, *command;
    double rest, late, then_late, message;
    long bytes, calls, beside, then, at, seed, factor;
};

/* Of each call: when it began and ended on this process, in seconds. */
struct times {
    double *begin, *end;
    double *delay; /* for how many milliseconds it was to sleep before */
};

static int rank, size;
static char *to, *from;
static int *counts, *displacements; /* of an alltoallv */

static const char *value_of(const char *word, const char *name) {
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static int read_word(const char *word, struct options *options) {
    const struct {
        const char *name;
        double *milliseconds;
        long *number;
        const char **text;
    } known[] = {
        {"rest", &options->rest, NULL, NULL},           {"late", &options->late, NULL, NULL},
        {"then_late", &options->then_late, NULL, NULL}, {"beside", NULL, &options->beside, NULL},
        {"then", NULL, &options->then, NULL},           {"at", NULL, &options->at, NULL},
        {"seed", NULL, &options->seed, NULL},           {"factor", NULL, &options->factor, NULL},
        {"message", &options->message, NULL, NULL},     {"command", NULL, NULL, &options->command}};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        const char *value = value_of(word, known[i].name);
        if (value == NULL)
            continue;
        if (known[i].milliseconds != NULL)
            *known[i].milliseconds = atof(value);
        else if (known[i].number != NULL)
            *known[i].number = atol(value);
        else
            *known[i].text = value;
        return 1;
    }
    return 0;
}

static int read_options(int argc, char **argv, struct options *options) {
    static const char *collectives[] = {"allgather", "allreduce", "alltoall", "alltoallv"};
    *options = (struct options){.then_late = -1, .at = -1, .seed = 1};
    if (argc < 4)
        return 0;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; ++i)
        if (strcmp(argv[1], collectives[i]) == 0)
            options->collective = collectives[i];
    options->bytes = options->then = atol(argv[2]);
    options->calls = atol(argv[3]);
    for (int i = 4; i < argc; ++i)
        if (!read_word(argv[i], options))
            return 0;
    if (options->then_late < 0)
        options->then_late = options->late;
    return options->collective != NULL && options->bytes > 0 && options->calls > 0 &&
           options->then > 0 && options->beside >= 0 && options->factor >= 0;
}

static double *numbers(long count) {
    double *memory = calloc((size_t)count, sizeof *memory);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static void carry_out(const char *collective, long bytes, double *begin, double *end) {
    const int count = (int)bytes, words = count / (int)sizeof(int);
    for (int other = 0; other < size; ++other) {
        counts[other] = count;
        displacements[other] = other * count;
    }
    *begin = MPI_Wtime();
    if (strcmp(collective, "alltoall") == 0)
        MPI_Alltoall(to, count, MPI_BYTE, from, count, MPI_BYTE, MPI_COMM_WORLD);
    else if (strcmp(collective, "alltoallv") == 0)
        MPI_Alltoallv(to, counts, displacements, MPI_BYTE, from, counts, displacements, MPI_BYTE,
                      MPI_COMM_WORLD);
    else if (strcmp(collective, "allgather") == 0)
        MPI_Allgather(to, count, MPI_BYTE, from, count, MPI_BYTE, MPI_COMM_WORLD);
    else
        MPI_Allreduce(to, from, words, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    *end = MPI_Wtime();
}

/* A number from 0 up to, but not with, another one. */
static double draw(double most, unsigned *state) {
    return most * rand_r(state) / (RAND_MAX + 1.0);
}

/* How long this process sleeps before every call, in milliseconds (Fig. 4.20, line 1). */
static double fixed_delay(const struct options *options, unsigned *state) {
    const long times = (long)draw((double)options->factor, state);
    return options->message * (double)times;
}

/* Return how many milliseconds it was to sleep. */
static double wait_for(const struct options *options, long call, double fixed, unsigned *state) {
    const double late = call < options->calls / 2 ? options->late : options->then_late;
    const double milliseconds = options->rest + fixed + draw(late, state);
    if (options->factor > 0)
        PMPI_Barrier(MPI_COMM_WORLD);
    if (milliseconds > 0)
        usleep((useconds_t)(milliseconds * 1e3));
    return milliseconds;
}

static long longest(const struct options *options) {
    const long most = options->bytes > options->then ? options->bytes : options->then;
    return most > options->beside ? most : options->beside;
}

/* Each process sends its number, plus 1: in each byte, or for a reduction in each int. */
static void make_buffers(const struct options *options) {
    const size_t bytes = (size_t)size * (size_t)longest(options);
    const size_t step = strcmp(options->collective, "allreduce") == 0 ? sizeof(int) : 1;
    to = calloc(bytes, 1);
    from = calloc(bytes, 1);
    counts = calloc((size_t)size, sizeof *counts);
    displacements = calloc((size_t)size, sizeof *displacements);
    if (to == NULL || from == NULL || counts == NULL || displacements == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i + step <= bytes; i += step)
        to[i] = (char)(rank + 1);
}

/* Each process has sent its number, plus 1, to all. */
static int is_right(const struct options *options) {
    const long bytes = options->then;
    int right = 1, all = 0;
    if (strcmp(options->collective, "allreduce") != 0) {
        for (int other = 0; other < size; ++other)
            right &= from[other * bytes] == (char)(other + 1);
        return right;
    }
    for (int other = 0; other < size; ++other)
        all |= other + 1;
    return bytes < (long)sizeof(int) || from[0] == (char)all;
}

static void print_numbers(const char *name, const double *values, long count) {
    printf(", \"%s\": [", name);
    for (long i = 0; i < count; ++i)
        printf("%s%.9f", i > 0 ? ", " : "", values[i]);
    printf("]");
}

static void report(const char *prefix, const struct times *own, long calls) {
    double *spent = numbers(calls), *elapsed = numbers(calls);
    double *arrived = numbers(calls), *left = numbers(calls);
    char name[64];
    for (long i = 0; i < calls; ++i)
        spent[i] = (own->end[i] - own->begin[i]) / size;
    PMPI_Reduce(spent, elapsed, (int)calls, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(own->begin, arrived, (int)calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    PMPI_Reduce(own->end, left, (int)calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (long i = 0; i < calls; ++i)
        left[i] -= arrived[i];
    if (rank == 0) {
        snprintf(name, sizeof name, "%selapsed", prefix);
        print_numbers(name, elapsed, calls);
        snprintf(name, sizeof name, "%slast", prefix);
        print_numbers(name, left, calls);
    }
    free(spent);
    free(elapsed);
    free(arrived);
    free(left);
}

static void report_delays(const double *own, long calls) {
    double *all = numbers(size * calls);
    PMPI_Gather(own, (int)calls, MPI_DOUBLE, all, (int)calls, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_numbers("delays", all, size * calls);
    free(all);
}

static void run(const struct options *options, struct times *own, struct times *beside) {
    unsigned state = (unsigned)options->seed * 7919U + (unsigned)rank;
    for (int i = 0; i < 8; ++i)
        rand_r(&state); /* the first numbers of near seeds are alike */
    const double fixed = fixed_delay(options, &state);
    for (long call = 0; call < options->calls; ++call) {
        const long bytes = call < options->calls / 2 ? options->bytes : options->then;
        if (call == options->at && rank == 0 && system(options->command) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (int turn = 0; turn < 2; ++turn) {
            if (turn != call % 2 && options->beside == 0)
                continue;
            struct times *times = turn == call % 2 ? own : beside;
            times->delay[call] = wait_for(options, call, fixed, &state);
            carry_out(options->collective, times == own ? bytes : options->beside,
                      &times->begin[call], &times->end[call]);
        }
    }
}

int main(int argc, char **argv) {
    struct options options;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!read_options(argc, argv, &options)) {
        if (rank == 0)
            fprintf(stderr, "usage: calls COLLECTIVE BYTES CALLS [NAME=VALUE]...\n");
        MPI_Finalize();
        return 2;
    }
    make_buffers(&options);
    const long calls = options.calls;
    struct times own = {numbers(calls), numbers(calls), numbers(calls)};
    struct times beside = {numbers(calls), numbers(calls), numbers(calls)};
    PMPI_Barrier(MPI_COMM_WORLD);
    run(&options, &own, &beside);
    /* Calls beside come first in every other pair; the last call has left its results. */
    const int own_is_last = options.beside == 0 || calls % 2 == 0;
    int right = !own_is_last || is_right(&options), all;
    PMPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"right\": %s", all ? "true" : "false");
    report("", &own, calls);
    if (options.beside > 0)
        report("beside_", &beside, calls);
    if (options.factor > 0)
        report_delays(own.delay, calls);
    if (rank == 0)
        printf("}\n");
    MPI_Finalize();
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
