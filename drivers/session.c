/*
 * The measuring session: one MPI job that checks and times any routine of the build at any
 * size, as told by commands on the standard input of rank 0, one a line; it answers in JSON,
 * one object a line.
 *
 *   hello
 *   check COLLECTIVE ROUTINE...
 *   measure COLLECTIVE BYTES TIMING COMPUTATION SETTLE CALLS REPETITIONS ROUTINE...
 *   quit
 *
 * A ROUTINE is an algorithm's name, with parameters as in linear:segment_size=8192. TIMING is
 * one of the mechanisms of Faraj 2006, Fig. 4.3. A repetition is CALLS calls, after an untimed one
 * if SETTLE is 1; its time is the mean of the calls, maximum over the ranks. The routines take
 * turns: repetition by repetition each is timed once, beginning with another one each time, so that
 * a drift of the machine hits all alike.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "conformance.h"
#include "timing.h"

enum { LINE = 8192, ROUTINES = 128 };

struct candidate {
    const char *text;
    const struct coll_routine *routine;
    struct coll_parameters parameters;
};

struct request {
    enum coll_collective collective;
    const char *timing;
    long bytes, computation, settle, calls, repetitions;
    int candidate_count;
    struct candidate candidates[ROUTINES];
};

static MPI_Comm control; /* commands and results, apart from what is timed */
static int world_rank, world_size;

static const char *const parameter_names[] = {COLL_PARAMETER_NAMES};

static void complain(const char *what, const char *about) {
    if (world_rank == 0)
        printf("{\"error\": \"%s: %s\"}\n", what, about);
}

/* Read NAME:parameter=value:... into a candidate; modifies `text`. Returns 0 if it is wrong. */
static int parse_candidate(char *text, enum coll_collective collective, struct candidate *out) {
    char *rest = NULL;
    const char *name = strtok_r(text, ":", &rest);
    out->routine = coll_find_routine(collective, name);
    if (out->routine == NULL)
        return 0;
    out->parameters = out->routine->defaults;
    for (char *item = strtok_r(NULL, ":", &rest); item != NULL; item = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(item, '=');
        int known = 0;
        if (value == NULL)
            return 0;
        *value++ = '\0';
        for (size_t i = 0; i < sizeof parameter_names / sizeof *parameter_names; ++i) {
            if (strcmp(item, parameter_names[i]) != 0)
                continue;
            *coll_parameter(&out->parameters, (int)i) = atoi(value);
            known = 1;
        }
        if (!known)
            return 0;
    }
    return 1;
}

static int parse_candidates(char *words, struct request *request) {
    char *rest = NULL;
    for (char *word = strtok_r(words, " \n", &rest); word != NULL;
         word = strtok_r(NULL, " \n", &rest)) {
        struct candidate *candidate = &request->candidates[request->candidate_count];
        candidate->text = strdup(word);
        if (request->candidate_count == ROUTINES ||
            !parse_candidate(word, request->collective, candidate)) {
            complain("unknown routine", candidate->text);
            return 0;
        }
        ++request->candidate_count;
    }
    return 1;
}

static int parse_collective(const char *name, enum coll_collective *collective) {
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        if (strcmp(coll_collective_names[i], name) == 0) {
            *collective = (enum coll_collective)i;
            return 1;
        }
    }
    complain("unknown collective", name);
    return 0;
}

/* The computation of Fig. 4.3 (c): `bound` times 1,000 floating-point operations. */
static void compute(long bound) {
    static volatile double a[1002], b[1002];
    for (long j = 0; j < bound; ++j)
        for (int k = 1; k <= 1000; ++k)
            a[k] = b[k + 1] + a[k - 1];
}

struct buffers {
    char *send;
    char *recv;
};

static int make_call(const struct request *request, const struct buffers *buffers,
                     struct coll_call *call) {
    const int bytes = (int)request->bytes;
    switch (request->collective) {
    case COLL_ALLTOALL:
        return coll_call_alltoall(call, buffers->send, bytes, MPI_BYTE, buffers->recv, bytes,
                                  MPI_BYTE, MPI_COMM_WORLD);
    case COLL_ALLGATHER:
        return coll_call_allgather(call, buffers->send, bytes, MPI_BYTE, buffers->recv, bytes,
                                   MPI_BYTE, MPI_COMM_WORLD);
    case COLL_BCAST:
        return coll_call_bcast(call, buffers->recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    default:
        return MPI_ERR_OTHER;
    }
}

/*
 * Time one repetition on this rank, in seconds per call. An untimed call may come first: TCP
 * connections remember the traffic before (congestion windows, losses), and a routine is to meet
 * the network as it leaves it itself, not as the candidate before did.
 */
static int repeat(const struct request *request, const struct candidate *candidate,
                  const struct coll_call *call, struct coll_comm *cc, double *seconds) {
    const int with_barrier = strcmp(request->timing, "barrier") == 0;
    const int with_computation = strcmp(request->timing, "computation") == 0;
    double elapsed = 0;
    if (request->settle) {
        COLL_TRY(timing_barrier(control));
        COLL_TRY(coll_run(candidate->routine, call, cc, &candidate->parameters));
    }
    COLL_TRY(timing_barrier(control));
    double start = PMPI_Wtime();
    for (long i = 0; i < request->calls; ++i) {
        if (with_barrier && i > 0)
            COLL_TRY(timing_barrier(control));
        if (with_computation)
            compute(request->computation);
        if (with_barrier || with_computation)
            start = PMPI_Wtime();
        COLL_TRY(coll_run(candidate->routine, call, cc, &candidate->parameters));
        if (with_barrier || with_computation)
            elapsed += PMPI_Wtime() - start;
    }
    if (!with_barrier && !with_computation)
        elapsed = PMPI_Wtime() - start;
    *seconds = elapsed / (double)request->calls;
    return MPI_SUCCESS;
}

static int run_repetitions(const struct request *request, const struct buffers *buffers,
                           double *seconds) {
    struct coll_call call;
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(MPI_COMM_WORLD, &cc));
    COLL_TRY(make_call(request, buffers, &call));
    for (long repetition = 0; repetition < request->repetitions; ++repetition) {
        for (int turn = 0; turn < request->candidate_count; ++turn) {
            const int i = (int)((repetition + turn) % request->candidate_count);
            COLL_TRY(repeat(request, &request->candidates[i], &call, cc,
                            &seconds[i * request->repetitions + repetition]));
        }
    }
    return MPI_SUCCESS;
}

static void print_times(const struct request *request, const double *seconds) {
    for (int i = 0; i < request->candidate_count; ++i) {
        printf("{\"routine\": \"%s\", \"seconds\": [", request->candidates[i].text);
        for (long r = 0; r < request->repetitions; ++r)
            printf("%s%.9f", r == 0 ? "" : ", ", seconds[i * request->repetitions + r]);
        printf("]}\n");
    }
}

static int measure(struct request *request) {
    const size_t copies = request->collective == COLL_BCAST ? 1 : (size_t)world_size;
    const size_t times = (size_t)request->candidate_count * (size_t)request->repetitions;
    const struct buffers buffers = {calloc(copies * (size_t)request->bytes + 1, 1),
                                    calloc(copies * (size_t)request->bytes + 1, 1)};
    double *seconds = calloc(times + 1, sizeof *seconds);
    double *slowest = calloc(times + 1, sizeof *slowest);
    int error = MPI_ERR_NO_MEM;
    if (buffers.send != NULL && buffers.recv != NULL && seconds != NULL && slowest != NULL)
        error = run_repetitions(request, &buffers, seconds);
    if (error == MPI_SUCCESS)
        error = PMPI_Reduce(seconds, slowest, (int)times, MPI_DOUBLE, MPI_MAX, 0, control);
    if (error == MPI_SUCCESS && world_rank == 0)
        print_times(request, slowest);
    free(buffers.send);
    free(buffers.recv);
    free(seconds);
    free(slowest);
    return error;
}

static int check(struct request *request) {
    for (int i = 0; i < request->candidate_count; ++i) {
        struct conformance_report report;
        const struct candidate *candidate = &request->candidates[i];
        COLL_TRY(conformance_check(request->collective, candidate->routine, &candidate->parameters,
                                   MPI_COMM_WORLD, CONFORMANCE_QUICK, &report));
        if (world_rank == 0)
            printf("{\"routine\": \"%s\", \"cases\": %d, \"wrong\": %d, \"first_wrong\": \"%s\"}\n",
                   candidate->text, report.cases, report.wrong, report.first_wrong);
    }
    return MPI_SUCCESS;
}

static int hello(void) {
    static const char *const kinds[] = {"native", "other", "cluster"};
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(MPI_COMM_WORLD, &cc));
    COLL_TRY(PMPI_Get_library_version(version, &length));
    version[strcspn(version, "\n\"\\")] = '\0';
    if (world_rank == 0)
        printf("{\"ranks\": %d, \"kind\": \"%s\", \"cluster\": \"%s\", \"topology_hash\": \"%s\", "
               "\"mpi\": \"%s\"}\n",
               world_size, kinds[cc->kind], coll_cluster_name, coll_cluster_hash, version);
    return MPI_SUCCESS;
}

static int parse_numbers(char *line, struct request *request, int *rest) {
    static char collective[64], timing[64];
    if (sscanf(line, "measure %63s %ld %63s %ld %ld %ld %ld %n", collective, &request->bytes,
               timing, &request->computation, &request->settle, &request->calls,
               &request->repetitions, rest) != 7) {
        complain("not a measure command", "see the head of session.c");
        return 0;
    }
    request->timing = timing;
    return parse_collective(collective, &request->collective);
}

/* Carry out one command; returns an MPI error code. */
static int obey(char *line) {
    struct request request = {0};
    char collective[64];
    int rest = 0, error = MPI_SUCCESS;
    if (strncmp(line, "hello", 5) == 0)
        return hello();
    if (strncmp(line, "measure ", 8) == 0) {
        if (parse_numbers(line, &request, &rest) && parse_candidates(line + rest, &request))
            error = measure(&request);
    } else if (sscanf(line, "check %63s %n", collective, &rest) == 1) {
        if (parse_collective(collective, &request.collective) &&
            parse_candidates(line + rest, &request))
            error = check(&request);
    } else {
        complain("unknown command", "expected hello, check, measure or quit");
    }
    for (int i = 0; i < request.candidate_count; ++i)
        free((char *)request.candidates[i].text);
    return error;
}

/* Rank 0 reads a command, all obey, until quit or the end of the input. */
static int serve(void) {
    char line[LINE];
    for (;;) {
        if (world_rank == 0 && fgets(line, sizeof line, stdin) == NULL)
            strcpy(line, "quit");
        COLL_TRY(PMPI_Bcast(line, sizeof line, MPI_CHAR, 0, control));
        if (strncmp(line, "quit", 4) == 0)
            return MPI_SUCCESS;
        COLL_TRY(obey(line));
        if (world_rank == 0) {
            printf("{\"done\": true}\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv) {
    if (PMPI_Init(&argc, &argv) != MPI_SUCCESS)
        return EXIT_FAILURE;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    const int error = serve();
    if (error != MPI_SUCCESS) {
        complain("MPI error", "a routine failed");
        fflush(stdout);
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    coll_comm_finalize();
    PMPI_Comm_free(&control);
    PMPI_Finalize();
    return EXIT_SUCCESS;
}
