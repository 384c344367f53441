/*
 * The measuring session: one MPI job that checks and times any routine of the build at any
 * size. Rank 0 reads commands from standard input, one per line, and answers in JSON, one
 * object per line.
 *
 *   hello
 *   communicator RANK...
 *   check COLLECTIVE ROUTINE...
 *   measure COLLECTIVE BYTES TIMING COMPUTATION SETTLE CALLS REPETITIONS ROUTINE...
 *   quit
 *
 * A ROUTINE is an algorithm's name, with parameters as in linear:segment_size=8192; after a
 * composition's name all of its parts may follow, as in
 * of_reduce_and_bcast+reduce/binomial+bcast/knomial:radix=4. TIMING is one of the mechanisms of
 * Faraj 2006, Fig. 4.3. A repetition is CALLS calls, after an untimed one if SETTLE is 1. The time
 * of a call is the maximum over the ranks, and the time of a repetition is the mean of its calls;
 * mpptest times all of them as one. The routines take turns: each is timed once per repetition, and
 * every repetition begins with another one, so that a drift of the machine hits all alike.
 *
 * Commands after `communicator` check and time on these ranks of the job, in that order; without
 * ranks, on all. The others wait for the next command meanwhile, and send nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "conformance.h"
#include "members.h"
#include "request.h"
#include "serve.h"
#include "timing.h"

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
    int *counts, *places; /* of blocks that may differ in length */
};

/* Whether a call's buffers hold the request's bytes for each rank. */
static int per_rank(const struct coll_case *kind) {
    return !kind->of_whole && (kind->send == CASE_ALL || kind->recv == CASE_ALL);
}

/* Elements of 8 bytes if the size allows, since operations on bytes are slower. */
static MPI_Datatype unit_of(const struct request *request, int *size) {
    const int real = coll_cases[request->collective]->reduces && request->bytes % 8 == 0;
    *size = real ? 8 : 1;
    return real ? MPI_DOUBLE : MPI_BYTE;
}

/* Blocks as even as can be, one after the other. */
static void fill_blocks(const struct coll_case *kind, int count, const struct buffers *buffers) {
    for (int rank = 0; rank < members.size; ++rank) {
        const long long start = (long long)count * rank, end = start + count;
        buffers->places[rank] = (int)(kind->of_whole ? start / members.size : start);
        buffers->counts[rank] = (int)(kind->of_whole ? end / members.size : end);
        buffers->counts[rank] -= buffers->places[rank];
    }
}

static int make_call(const struct request *request, const struct buffers *buffers,
                     struct coll_call *call) {
    const struct coll_case *kind = coll_cases[request->collective];
    int size;
    const MPI_Datatype type = unit_of(request, &size);
    const int count = (int)request->bytes / size;
    fill_blocks(kind, count, buffers);
    *call = (struct coll_call){.collective = request->collective,
                               .comm = members.comm,
                               .sendbuf = buffers->send,
                               .recvbuf = buffers->recv,
                               .send_count = kind->uneven ? buffers->counts[members.rank] : count,
                               .send_type = type,
                               .recv_count = count,
                               .recv_type = type,
                               .op = size == 1 ? MPI_BXOR : MPI_SUM};
    if (kind->uneven)
        call->send_blocks = call->recv_blocks =
            (struct coll_blocks){.counts = buffers->counts, .displacements = buffers->places};
    return coll_views[request->collective]->measure(call);
}

/* The number of times that a repetition yields: one per call, or one for all calls. */
static int intervals(const struct request *request) {
    return strcmp(request->timing, "mpptest") == 0 ? 1 : (int)request->calls;
}

/*
 * Time one repetition on this rank: seconds[] of each call, or of a call on average. An untimed
 * call may come first: TCP connections remember earlier traffic (congestion windows, losses), and a
 * routine should meet the network as it leaves it itself, not as the candidate before did.
 */
static int repeat(const struct request *request, const struct candidate *candidate,
                  const struct coll_call *call, struct coll_comm *cc, double *seconds) {
    const struct coll_routine *routine = coll_routine_for(candidate->routine, cc);
    const int with_barrier = strcmp(request->timing, "barrier") == 0;
    const int with_computation = strcmp(request->timing, "computation") == 0;
    if (request->settle) {
        COLL_TRY(timing_barrier(members.comm));
        COLL_TRY(coll_run(routine, call, cc, &candidate->parameters));
    }
    COLL_TRY(timing_barrier(members.comm));
    double start = PMPI_Wtime();
    for (long i = 0; i < request->calls; ++i) {
        if (with_barrier && i > 0)
            COLL_TRY(timing_barrier(members.comm));
        if (with_computation)
            compute(request->computation);
        if (with_barrier || with_computation)
            start = PMPI_Wtime();
        COLL_TRY(coll_run(routine, call, cc, &candidate->parameters));
        if (with_barrier || with_computation)
            seconds[i] = PMPI_Wtime() - start;
    }
    if (!with_barrier && !with_computation)
        *seconds = (PMPI_Wtime() - start) / (double)request->calls;
    return MPI_SUCCESS;
}

static int run_repetitions(const struct request *request, const struct buffers *buffers,
                           double *seconds) {
    const int each = intervals(request);
    struct coll_call call;
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(members.comm, &cc));
    COLL_TRY(make_call(request, buffers, &call));
    for (long repetition = 0; repetition < request->repetitions; ++repetition) {
        for (int turn = 0; turn < request->candidate_count; ++turn) {
            const int i = (int)((repetition + turn) % request->candidate_count);
            COLL_TRY(repeat(request, &request->candidates[i], &call, cc,
                            &seconds[(i * request->repetitions + repetition) * each]));
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

static int allocate(const struct request *request, struct buffers *buffers) {
    const size_t copies = per_rank(coll_cases[request->collective]) ? (size_t)members.size : 1;
    const size_t bytes = copies * (size_t)request->bytes + 1;
    buffers->send = calloc(bytes, 1);
    buffers->recv = calloc(bytes, 1);
    buffers->counts = calloc((size_t)members.size, sizeof *buffers->counts);
    buffers->places = calloc((size_t)members.size, sizeof *buffers->places);
    return buffers->send != NULL && buffers->recv != NULL && buffers->counts != NULL &&
           buffers->places != NULL;
}

static void release(struct buffers *buffers) {
    free(buffers->send);
    free(buffers->recv);
    free(buffers->counts);
    free(buffers->places);
}

/* The times of all repetitions, on the first of the members; rank 0 gets them. */
static int time_members(const struct request *request, int times, double *seconds, double *means) {
    struct buffers buffers;
    int error = MPI_ERR_NO_MEM;
    if (allocate(request, &buffers))
        error = run_repetitions(request, &buffers, seconds);
    if (error == MPI_SUCCESS)
        error = timing_reduce(seconds, times, intervals(request), means, members.comm);
    release(&buffers);
    return error;
}

static int measure(struct request *request) {
    const size_t times = (size_t)request->candidate_count * (size_t)request->repetitions;
    double *seconds = calloc(times * (size_t)intervals(request) + 1, sizeof *seconds);
    double *means = calloc(times + 1, sizeof *means);
    int error = seconds == NULL || means == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (error == MPI_SUCCESS && is_member())
        error = time_members(request, (int)times, seconds, means);
    if (error == MPI_SUCCESS)
        error = bring(means, times * sizeof *means);
    if (error == MPI_SUCCESS && world_rank == 0)
        print_times(request, means);
    free(seconds);
    free(means);
    return error;
}

static int check_members(enum coll_collective collective, const struct candidate *candidate,
                         struct conformance_report *report) {
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(members.comm, &cc));
    return conformance_check(collective, coll_routine_for(candidate->routine, cc),
                             &candidate->parameters, members.comm, CONFORMANCE_QUICK, report);
}

static int check(struct request *request) {
    for (int i = 0; i < request->candidate_count; ++i) {
        struct conformance_report report = {0};
        const struct candidate *candidate = &request->candidates[i];
        if (is_member())
            COLL_TRY(check_members(request->collective, candidate, &report));
        COLL_TRY(bring(&report, sizeof report));
        if (world_rank == 0)
            printf("{\"routine\": \"%s\", \"cases\": %d, \"wrong\": %d, \"first_wrong\": \"%s\"}\n",
                   candidate->text, report.cases, report.wrong, report.first_wrong);
    }
    return MPI_SUCCESS;
}

static int hello(void) {
    static const char *const kinds[] = {[COLL_KIND_NATIVE] = "native",
                                        [COLL_KIND_OTHER] = "other",
                                        [COLL_KIND_HOSTS] = "hosts",
                                        [COLL_KIND_CLUSTER] = "cluster"};
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(MPI_COMM_WORLD, &cc));
    COLL_TRY(describe_mpi(version));
    if (world_rank == 0)
        printf("{\"ranks\": %d, \"kind\": \"%s\", \"cluster\": \"%s\", \"topology_hash\": \"%s\", "
               "\"mpi\": \"%s\"}\n",
               world_size, kinds[cc->kind], coll_cluster_name, coll_cluster_hash, version);
    return MPI_SUCCESS;
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
    } else if (strncmp(line, "communicator", 12) == 0) {
        error = choose_members(line + 12);
    } else {
        complain("unknown command",
                 "expected hello, communicator, check, measure or quit, on a line not too long");
    }
    for (int i = 0; i < request.candidate_count; ++i)
        free((char *)request.candidates[i].text);
    return error;
}

int main(int argc, char **argv) {
    if (PMPI_Init(&argc, &argv) != MPI_SUCCESS)
        return EXIT_FAILURE;
    members_are_all();
    run_session(obey);
    coll_comm_finalize();
    PMPI_Finalize();
    return EXIT_SUCCESS;
}
