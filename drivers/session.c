/*
 * The measuring session: one MPI job that checks and times any routine of the build at any
 * size. Rank 0 reads commands from standard input, one per line, and answers in JSON, one
 * object per line.
 *
 *   hello
 *   environment
 *   communicator RANK... | RANK...
 *   blocks RANK TO BYTES TO BYTES...
 *   check COLLECTIVE ROUTINE...
 *   check_again COLLECTIVE ROUTINE...
 *   calibrate
 *   message COLLECTIVE BYTES
 *   delays CALL RANK DELAY...
 *   measure COLLECTIVE BYTES TIMING COMPUTATION METRIC SETTLE CALLS REPETITIONS ROUTINE...
 *   quit
 *
 * A ROUTINE is an algorithm's name, with parameters as in linear:segment_size=8192; after a
 * composition's name all of its parts may follow, as in
 * of_reduce_and_bcast+reduce/binomial+bcast/knomial:radix=4. TIMING is one of the mechanisms, which
 * are the files timing_*.c, and COMPUTATION the milliseconds that a rank computes before a call, if
 * the mechanism says so; `calibrate` answers with what the ranks compute in one. A repetition is
 * CALLS calls, after an untimed one if SETTLE is 1. METRIC says what the time of a call is: that of
 * its slowest rank, or the mean over the ranks. The time of a repetition is the mean of its calls;
 * mpptest times all of them as one. If ranks come late (imbalance, replay), TIMING also has the
 * plan: imbalance:unit=1000:most=16:seed=1:first=0, where the unit is in nanoseconds and `first` is
 * the number of the first experiment; `delays` gives the recorded calls of a replay, in
 * microseconds, and `message` answers with the time of a message of an operation's size, which a
 * unit may be. The routines take turns: each is timed once per repetition, and every repetition
 * begins with another one, so that a drift of the machine hits all alike.
 *
 * `check` makes all trials of a quick check. `check_again` leaves out some of them if the routine,
 * with whatever values, was right on these ranks before.
 *
 * Commands after `communicator` check and time on these ranks of the job, in that order; without
 * ranks, on all. The others wait for the next command meanwhile, and send nothing. `blocks`, which
 * comes after it, gives the lengths of the blocks in proportion to each other: for an alltoallv
 * those of one rank for the others, and BYTES is their mean; for an allgatherv those of all ranks,
 * as of rank 0, and BYTES is their sum.
 *
 * Bars stand between the ranks of several communicators, which time at the same time; all other
 * ranks wait in a barrier. `measure` then has what follows its name once for each of them, with
 * bars between. Checks, `message` and `blocks` are for one communicator, and so are mechanisms in
 * which ranks come late. Communicators are kept, as a program asks for the same ones again and
 * again.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrivals.h"
#include "block_table.h"
#include "calibration.h"
#include "coll.h"
#include "conformance.h"
#include "environment.h"
#include "members.h"
#include "message_time.h"
#include "metric.h"
#include "request.h"
#include "serve.h"
#include "shared_clock.h"
#include "timing.h"

struct buffers {
    char *send;
    char *recv;
    int *counts, *displacements; /* of blocks that may differ in length */
};

/* Elements of 8 bytes if the size allows, since operations on bytes are slower. */
static MPI_Datatype unit_of(const struct request *request, int *size) {
    const int real = coll_descriptors[request->collective].reduces && request->bytes % 8 == 0;
    *size = real ? 8 : 1;
    return real ? MPI_DOUBLE : MPI_BYTE;
}

/* Whether the blocks of a call are those that `blocks` told. */
static int uses_table(const struct request *request) {
    const struct coll_descriptor *descriptor = &coll_descriptors[request->collective];
    return descriptor->uneven && !descriptor->rooted && !descriptor->reduces &&
           block_table_ranks() == members.size;
}

/* The block of each rank, where all blocks together have so many bytes. */
static struct coll_blocks tabled_vector(long all, int *counts, int *displacements) {
    double before = 0;
    for (int rank = 0; rank < members.size; ++rank) {
        const double after = before + block_table_share(rank);
        displacements[rank] = (int)((double)all * before);
        counts[rank] = (int)((double)all * after) - displacements[rank];
        before = after;
    }
    return (struct coll_blocks){.counts = counts, .displacements = displacements};
}

/* Blocks as even as can be, one after the other. */
static void fill_blocks(const struct coll_descriptor *descriptor, int count,
                        const struct buffers *buffers) {
    for (int rank = 0; rank < members.size; ++rank) {
        const long long first = (long long)count * rank, end = first + count;
        buffers->displacements[rank] = (int)(descriptor->whole ? first / members.size : first);
        buffers->counts[rank] = (int)(descriptor->whole ? end / members.size : end);
        buffers->counts[rank] -= buffers->displacements[rank];
    }
}

/* The blocks that a rank sends, or receives, in the proportions that `blocks` told. */
static struct coll_blocks tabled_blocks(long mean, int sends, int *counts, int *displacements) {
    int place = 0;
    for (int rank = 0; rank < members.size; ++rank) {
        displacements[rank] = place;
        counts[rank] = sends ? block_table_bytes(members.rank, rank, mean)
                             : block_table_bytes(rank, members.rank, mean);
        place += counts[rank];
    }
    return (struct coll_blocks){.counts = counts, .displacements = displacements};
}

static int make_call(const struct request *request, const struct buffers *buffers,
                     struct coll_call *call) {
    const struct coll_descriptor *descriptor = &coll_descriptors[request->collective];
    int size;
    const MPI_Datatype type = unit_of(request, &size);
    const int count = (int)request->bytes / size;
    fill_blocks(descriptor, count, buffers);
    *call =
        (struct coll_call){.collective = request->collective,
                           .comm = members.comm,
                           .sendbuf = buffers->send,
                           .recvbuf = buffers->recv,
                           .send_count = descriptor->uneven ? buffers->counts[members.rank] : count,
                           .send_type = type,
                           .recv_count = count,
                           .recv_type = type,
                           .op = size == 1 ? MPI_BXOR : MPI_SUM};
    if (descriptor->uneven)
        call->send_blocks = call->recv_blocks = (struct coll_blocks){
            .counts = buffers->counts, .displacements = buffers->displacements};
    if (uses_table(request) && descriptor->whole) {
        call->recv_blocks = tabled_vector(request->bytes, buffers->counts, buffers->displacements);
        call->send_blocks = call->recv_blocks;
        call->send_count = buffers->counts[members.rank];
    } else if (uses_table(request)) {
        int *more = buffers->counts + members.size, *beyond = buffers->displacements + members.size;
        call->send_blocks =
            tabled_blocks(request->bytes, 1, buffers->counts, buffers->displacements);
        call->recv_blocks = tabled_blocks(request->bytes, 0, more, beyond);
    }
    return coll_views[request->collective]->measure(call);
}

/* The number of times that a repetition yields: one per call, or one for all calls. */
static int intervals(const struct request *request) {
    return request->timing->each_call ? (int)request->calls : 1;
}

/* A call of the routine under test. */
struct trial {
    const struct coll_routine *routine;
    const struct coll_call *call;
    struct coll_comm *cc;
    const struct coll_parameters *parameters;
};

static int run_trial(const void *what) {
    const struct trial *trial = what;
    return coll_run(trial->routine, trial->call, trial->cc, trial->parameters);
}

/* What this rank measures: for each candidate, each repetition, each call. */
struct times {
    double *seconds;
    double *arrivals; /* if ranks come late; else NULL */
    double *delays;   /* of one repetition, likewise */
    double behind;    /* by how much this rank came later than planned at the most */
};

/*
 * An untimed call: TCP connections remember earlier traffic (congestion windows, losses), and a
 * routine should meet the network as it leaves it itself, not as the candidate before did. Ranks
 * come as late to it as to the first timed call: routines learn from it, too.
 */
static int settle(const struct request *request, const struct timed *timed) {
    double seconds, arrival;
    struct timed untimed = *timed;
    COLL_TRY(timing_barrier(members.comm));
    if (timed->delays == NULL)
        return timed->call(timed->what);
    untimed.calls = 1;
    untimed.arrivals = &arrival;
    return request->timing->repeat(&untimed, &seconds);
}

/*
 * Time one repetition on this rank: seconds[] of each call, or of a call on average. An untimed
 * call may come first.
 */
static int repeat(const struct request *request, const struct candidate *candidate,
                  const struct coll_call *call, struct coll_comm *cc, double *seconds,
                  const double *delays, double *arrivals) {
    const struct coll_routine *routine = coll_routine_for(candidate->routine, cc);
    const struct trial trial = {routine, call, cc, &candidate->parameters};
    const struct timed timed = {.call = run_trial,
                                .what = &trial,
                                .calls = request->calls,
                                .computation = request->computation / 1e3,
                                .bound = calibration_bound(request->computation),
                                .comm = members.comm,
                                .delays = delays,
                                .arrivals = arrivals};
    if (request->settle)
        COLL_TRY(settle(request, &timed));
    COLL_TRY(timing_barrier(members.comm));
    return request->timing->repeat(&timed, seconds);
}

/* As `repeat`, for ranks that come late. */
static int repeat_late(const struct request *request, const struct candidate *candidate,
                       const struct coll_call *call, struct coll_comm *cc, long repetition,
                       size_t at, struct times *times) {
    double *arrivals = &times->arrivals[at];
    arrivals_delays(&request->arrivals, repetition, members.rank, request->calls, times->delays);
    COLL_TRY(repeat(request, candidate, call, cc, &times->seconds[at], times->delays, arrivals));
    for (long i = 0; i < request->calls; ++i)
        if (arrivals[i] - times->delays[i] > times->behind)
            times->behind = arrivals[i] - times->delays[i];
    return MPI_SUCCESS;
}

static int run_repetitions(const struct request *request, const struct buffers *buffers,
                           struct times *times) {
    const int each = intervals(request);
    const int late = request->timing->late;
    struct coll_call call;
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(members.comm, &cc));
    COLL_TRY(coll_comm_private(members.comm, cc)); /* else the first timed call makes it */
    COLL_TRY(make_call(request, buffers, &call));
    if (late)
        COLL_TRY(shared_clock_open(members.comm));
    for (long repetition = 0; repetition < request->repetitions; ++repetition) {
        if (late)
            COLL_TRY(shared_clock_align(members.comm));
        for (int turn = 0; turn < request->candidate_count; ++turn) {
            const int i = (int)((repetition + turn) % request->candidate_count);
            const struct candidate *candidate = &request->candidates[i];
            const size_t at = (size_t)((i * request->repetitions + repetition) * each);
            COLL_TRY(late ? repeat_late(request, candidate, &call, cc, repetition, at, times)
                          : repeat(request, candidate, &call, cc, &times->seconds[at], NULL, NULL));
        }
    }
    return MPI_SUCCESS;
}

/* What rank 0 gets, for each candidate and repetition: the time by the metric, or what is known of
 * ranks that come late. */
struct results {
    double *seconds; /* as many as candidates times repetitions; of late ranks `lateness`, too */
    struct lateness lateness;
    double behind, clock_error;
};

static void print_list(const char *name, const double *values, long count) {
    printf(", \"%s\": [", name);
    for (long i = 0; i < count; ++i)
        printf("%s%.9f", i == 0 ? "" : ", ", values[i]);
    printf("]");
}

static void print_results(const struct request *request, const struct results *results) {
    const struct lateness *late = &results->lateness;
    for (int i = 0; i < request->candidate_count; ++i) {
        const long at = i * request->repetitions, count = request->repetitions;
        printf("{\"routine\": \"%s\"", request->candidates[i].text);
        if (request->timing->late) {
            print_list("seconds", &(request->metric == METRIC_MEAN ? late->mean : late->last)[at],
                       count);
            print_list("mean", &late->mean[at], count);
            print_list("last", &late->last[at], count);
            print_list("spread", &late->spread[at], count);
            printf(", \"behind\": %.9f, \"clock_error\": %.9f", results->behind,
                   results->clock_error);
        } else {
            print_list("seconds", &results->seconds[at], count);
        }
        printf("}\n");
    }
}

static int allocate(const struct request *request, struct buffers *buffers) {
    const size_t copies = coll_descriptors[request->collective].whole ? 1 : (size_t)members.size;
    size_t send = copies * (size_t)request->bytes + 1, recv = send;
    if (uses_table(request) && !coll_descriptors[request->collective].whole) {
        send = 1 + block_table_all(members.rank, request->bytes, 1);
        recv = 1 + block_table_all(members.rank, request->bytes, 0);
    }
    buffers->send = calloc(send, 1);
    buffers->recv = calloc(recv, 1);
    buffers->counts = calloc(2 * (size_t)members.size, sizeof *buffers->counts);
    buffers->displacements = calloc(2 * (size_t)members.size, sizeof *buffers->displacements);
    return buffers->send != NULL && buffers->recv != NULL && buffers->counts != NULL &&
           buffers->displacements != NULL;
}

static void release(struct buffers *buffers) {
    free(buffers->send);
    free(buffers->recv);
    free(buffers->counts);
    free(buffers->displacements);
}

/* Make one time of those of all ranks, on the first of the members. */
static int reduce_times(const struct request *request, int count, const struct times *times,
                        struct results *results) {
    const int each = intervals(request);
    if (!request->timing->late)
        return metric_reduce(request->metric, times->seconds, count, each, results->seconds,
                             members.comm);
    COLL_TRY(metric_lateness(times->seconds, times->arrivals, count, each, &results->lateness,
                             members.comm));
    results->clock_error = shared_clock_error();
    return PMPI_Reduce(&times->behind, &results->behind, 1, MPI_DOUBLE, MPI_MAX, 0, members.comm);
}

/* The times of all repetitions, on the first of the members. */
static int time_members(const struct request *request, int count, struct results *results) {
    const size_t all = (size_t)count * (size_t)intervals(request) + 1;
    const int late = request->timing->late;
    struct buffers buffers;
    struct times times = {.seconds = calloc(all, sizeof(double)),
                          .arrivals = late ? calloc(all, sizeof(double)) : NULL,
                          .delays = late ? calloc((size_t)request->calls, sizeof(double)) : NULL};
    int error = MPI_ERR_NO_MEM;
    if (allocate(request, &buffers) && times.seconds != NULL &&
        (!late || (times.arrivals != NULL && times.delays != NULL)))
        error = run_repetitions(request, &buffers, &times);
    if (error == MPI_SUCCESS)
        error = reduce_times(request, count, &times, results);
    release(&buffers);
    free(times.seconds);
    free(times.arrivals);
    free(times.delays);
    return error;
}

/* A replay, which is for one communicator, needs a recording of as many ranks as are members; all
 * ranks of the job know both. */
static int has_recording(const struct request *request) {
    return !request->timing->late || request->arrivals.most > 0 || arrivals_ranks() == members.size;
}

static size_t time_count(const struct request *request) {
    return (size_t)request->candidate_count * (size_t)request->repetitions;
}

/* Room for results, and for the two numbers beside them. */
static int make_results(const struct request *request, struct results *results) {
    const size_t count = time_count(request);
    double *room = calloc(4 * count + 3, sizeof *room);
    if (room == NULL)
        return MPI_ERR_NO_MEM;
    *results = (struct results){.seconds = room,
                                .lateness = {room + count, room + 2 * count, room + 3 * count}};
    return MPI_SUCCESS;
}

/* Bring the results of a communicator to rank 0 of the job. */
static int bring_results(const struct request *request, int communicator, struct results *results) {
    const size_t count = time_count(request);
    double *beside = &results->seconds[4 * count];
    beside[0] = results->behind;
    beside[1] = results->clock_error;
    COLL_TRY(bring(communicator, results->seconds, (4 * count + 2) * sizeof *beside));
    results->behind = beside[0];
    results->clock_error = beside[1];
    return MPI_SUCCESS;
}

/* Print the results of a communicator on rank 0 of the job; `own` are those of this rank's own. */
static int tell_results(const struct request *request, int communicator,
                        const struct results *own) {
    const int is_own = communicator == members.own;
    struct results results = *own;
    if (world_rank != 0 && world_rank != members.first[communicator])
        return MPI_SUCCESS;
    if (!is_own)
        COLL_TRY(make_results(request, &results));
    const int error = bring_results(request, communicator, &results);
    if (error == MPI_SUCCESS && world_rank == 0)
        print_results(request, &results);
    if (!is_own)
        free(results.seconds);
    return error;
}

/*
 * Each communicator times its own request. If there are several, no result is on its way before all
 * have timed: it would cross their links. Meanwhile only messages of a barrier do, without data.
 */
static int measure(const struct request *requests) {
    struct results own = {0};
    int error = MPI_SUCCESS;
    if (is_member()) {
        const struct request *request = &requests[members.own];
        error = make_results(request, &own);
        if (error == MPI_SUCCESS)
            error = time_members(request, (int)time_count(request), &own);
    }
    if (error == MPI_SUCCESS && members.communicators > 1)
        error = PMPI_Barrier(control);
    for (int k = 0; k < members.communicators && error == MPI_SUCCESS; ++k)
        error = tell_results(&requests[k], k, &own);
    free(own.seconds);
    return error;
}

static int check_members(enum coll_collective collective, const struct candidate *candidate,
                         int again, struct conformance_report *report) {
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(members.comm, &cc));
    const struct coll_routine *routine = coll_routine_for(candidate->routine, cc);
    int *right = &members.right[routine - coll_routines];
    COLL_TRY(conformance_check_again(collective, routine, &candidate->parameters, members.comm,
                                     again ? *right : 0, report));
    *right += report->wrong == 0;
    return MPI_SUCCESS;
}

static int check(struct request *request, int again) {
    for (int i = 0; i < request->candidate_count; ++i) {
        struct conformance_report report = {0};
        const struct candidate *candidate = &request->candidates[i];
        if (is_member())
            COLL_TRY(check_members(request->collective, candidate, again, &report));
        COLL_TRY(bring(0, &report, sizeof report));
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

/* How much each rank of the job computes in a millisecond. */
static int calibrate(void) {
    const long rate = calibration_rate();
    long *rates = calloc((size_t)world_size, sizeof *rates);
    if (rates == NULL)
        return MPI_ERR_NO_MEM;
    const int error = PMPI_Gather(&rate, 1, MPI_LONG, rates, 1, MPI_LONG, 0, control);
    if (error == MPI_SUCCESS && world_rank == 0) {
        printf("{\"rates\": [");
        for (int i = 0; i < world_size; ++i)
            printf("%s%ld", i == 0 ? "" : ", ", rates[i]);
        printf("]}\n");
    }
    free(rates);
    return error;
}

/* The bytes of a message of an operation; if blocks of a whole differ, their mean. */
static long message_bytes(enum coll_collective collective, long bytes) {
    const struct coll_descriptor *descriptor = &coll_descriptors[collective];
    return descriptor->whole && descriptor->uneven ? bytes / members.size : bytes;
}

/* The time of a message of an operation's size, on the members. */
static int tell_message_time(const char *line) {
    char name[64];
    long bytes;
    double seconds = 0;
    enum coll_collective collective;
    if (sscanf(line, "message %63s %ld", name, &bytes) != 2 || bytes < 0 || bytes > INT_MAX) {
        complain("not a message command", "see the head of session.c");
        return MPI_SUCCESS;
    }
    if (!parse_collective(name, &collective))
        return MPI_SUCCESS;
    bytes = message_bytes(collective, bytes);
    if (is_member())
        COLL_TRY(message_time(members.comm, bytes, &seconds));
    COLL_TRY(bring(0, &seconds, sizeof seconds));
    if (world_rank == 0)
        printf("{\"bytes\": %ld, \"message\": %.9f}\n", bytes, seconds);
    return MPI_SUCCESS;
}

static void release_request(struct request *request) {
    for (int i = 0; i < request->candidate_count; ++i)
        free((char *)request->candidates[i].text);
}

/* Read what each communicator is to measure. Returns 0 if it is wrong. */
static int parse_requests(char *words, struct request *requests) {
    char *rest = NULL;
    int count = 0, at;
    for (char *one = strtok_r(words, "|", &rest); one != NULL; one = strtok_r(NULL, "|", &rest)) {
        if (count == members.communicators) {
            complain("not a measure command", "there are more requests than communicators");
            return 0;
        }
        struct request *request = &requests[count++];
        if (!parse_numbers(one, request, &at) || !parse_candidates(one + at, request))
            return 0;
        if (request->timing->late && members.communicators > 1) {
            complain("ranks that come late", "there are several communicators");
            return 0;
        }
    }
    if (count < members.communicators)
        complain("not a measure command", "there are more communicators than requests");
    return count == members.communicators;
}

/* Carry out `measure REQUEST | REQUEST...`. */
static int obey_measure(char *words) {
    struct request *requests = calloc((size_t)members.communicators, sizeof *requests);
    int error = MPI_SUCCESS;
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    if (parse_requests(words, requests)) {
        if (has_recording(requests))
            error = measure(requests);
        else
            complain("replay", "there are no delays for these ranks");
    }
    for (int k = 0; k < members.communicators; ++k)
        release_request(&requests[k]);
    free(requests);
    return error;
}

/* Carry out a check, perhaps one again; the words are those after the command's name. */
static int obey_check(char *words, int again) {
    struct request request = {0};
    char collective[64];
    int rest = 0, error = MPI_SUCCESS;
    if (sscanf(words, "%63s %n", collective, &rest) != 1)
        complain("not a check command", "see the head of session.c");
    else if (parse_collective(collective, &request.collective) &&
             parse_candidates(words + rest, &request))
        error = check(&request, again);
    release_request(&request);
    return error;
}

/* Whether a command is for one communicator, and there are several. */
static int is_for_one(const char *line) {
    static const char *const names[] = {"check ", "check_again ", "message ", "blocks "};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (strncmp(line, names[i], strlen(names[i])) == 0)
            return members.communicators > 1;
    return 0;
}

/* Carry out one command; returns an MPI error code. */
static int obey(char *line) {
    if (is_for_one(line)) {
        complain("several communicators", "they can only measure");
        return MPI_SUCCESS;
    }
    if (strncmp(line, "hello", 5) == 0)
        return hello();
    if (strncmp(line, "calibrate", 9) == 0)
        return calibrate();
    if (strncmp(line, "environment", 11) == 0)
        return print_environment(control);
    if (strncmp(line, "message ", 8) == 0)
        return tell_message_time(line);
    if (strncmp(line, "measure ", 8) == 0)
        return obey_measure(line + 8);
    if (strncmp(line, "check ", 6) == 0)
        return obey_check(line + 6, 0);
    if (strncmp(line, "check_again ", 12) == 0)
        return obey_check(line + 12, 1);
    if (strncmp(line, "communicator", 12) == 0) {
        block_table_forget();
        return choose_members(line + 12);
    }
    if (strncmp(line, "blocks ", 7) == 0) {
        if (!block_table_keep(line + 7, members.size))
            complain("not blocks", "see block_table.h");
    } else if (strncmp(line, "delays ", 7) == 0) {
        if (!arrivals_keep(line + 7))
            complain("not delays", "see arrivals.h");
    } else {
        complain(
            "unknown command",
            "expected hello, environment, communicator, blocks, check, check_again, calibrate, "
            "message, delays, measure or quit, on one line");
    }
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    if (PMPI_Init(&argc, &argv) != MPI_SUCCESS || members_are_all() != MPI_SUCCESS)
        return EXIT_FAILURE;
    run_session(obey);
    forget_members();
    coll_comm_finalize();
    PMPI_Finalize();
    return EXIT_SUCCESS;
}
