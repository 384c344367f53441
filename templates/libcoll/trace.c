/* LIBCOLL_TRACE: what communicators are; which routine served how many calls of which sizes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"

/* Class 0 is for 0 bytes, class c for 2^(c-1) to 2^c - 1 bytes. */
enum { CLASSES = 64 };

/* A row for each routine, made when the first call is counted; NULL without memory. */
static atomic_ulong (*calls)[CLASSES];
/* Starts of persistent operations that have a plan. */
static atomic_ulong starts[COLL_COLLECTIVES][CLASSES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_rows(void) {
    calls = calloc((size_t)coll_routine_count, sizeof *calls);
}

/* Whether there is something to print; a histogram goes to its file without a word. */
static int prints(void) {
    return coll_settings()->tracing && coll_settings()->histogram == NULL;
}

static int size_class(MPI_Aint bytes) {
    int class = 0;
    for (; bytes > 0; bytes >>= 1)
        ++class;
    return class;
}

void coll_trace_count(const struct coll_routine *routine, MPI_Aint bytes) {
    if (!coll_settings()->tracing)
        return;
    pthread_once(&once, make_rows);
    if (calls == NULL)
        return;
    atomic_fetch_add_explicit(&calls[routine - coll_routines][size_class(bytes)], 1,
                              memory_order_relaxed);
}

void coll_trace_start(int collective, MPI_Aint bytes) {
    if (coll_settings()->tracing)
        atomic_fetch_add_explicit(&starts[collective][size_class(bytes)], 1, memory_order_relaxed);
}

/* Print a line for each class of sizes that has calls. */
static void print_row(int rank, int collective, const char *name, atomic_ulong row[CLASSES],
                      const char *what) {
    for (int class = 0; class < CLASSES; ++class) {
        unsigned long count = atomic_load_explicit(&row[class], memory_order_relaxed);
        unsigned long long from = class == 0 ? 0 : 1ULL << (class - 1);
        unsigned long long to = class == 0 ? 0 : 2 * from - 1;
        if (count != 0)
            fprintf(stderr, "libcoll: rank %d: %-10s %-24s %12llu..%-12llu bytes %10lu %s\n", rank,
                    coll_collective_names[collective], name, from, to, count, what);
    }
}

/* What has been told of a communicator. */
enum { NOTHING, WITHOUT_TWIN, WITH_TWIN, FOR_NATIVE };

static int state_of(const struct coll_comm *cc) {
    if (cc->kind == COLL_KIND_NATIVE || coll_settings()->gpu_support != NULL)
        return FOR_NATIVE;
    return cc->comm == MPI_COMM_NULL ? WITHOUT_TWIN : WITH_TWIN;
}

/* The kind with its reason, or the name of the group. */
static void describe(const struct coll_comm *cc, char *text, size_t room) {
    static const char *const reasons[] = {
        [COLL_WHY_NOTHING] = "",
        [COLL_WHY_INTER] = "an intercommunicator",
        [COLL_WHY_SINGLE] = "a single rank",
        [COLL_WHY_THREADS] = "its ranks are threads",
        [COLL_WHY_LIMIT] = "some rank has as many private duplicates as it may have",
        [COLL_WHY_CONTEXTS] = "the MPI library has no room for a private duplicate",
    };
    static const char *const kinds[] = {"native", "other", "hosts", "cluster"};
    if (coll_settings()->gpu_support != NULL)
        snprintf(text, room, "native: buffers may be on a GPU, says %s",
                 coll_settings()->gpu_support);
    else if (cc->why == COLL_WHY_UNLIKE)
        snprintf(text, room, "native: rank %d and rank 0 differ in build or settings",
                 cc->odd_rank);
    else if (cc->why == COLL_WHY_STRANGER)
        snprintf(text, room, "%s: rank %d is on '%s', which is no host of %s", kinds[cc->kind],
                 cc->odd_rank, cc->odd_name, coll_cluster_name);
    else if (cc->kind == COLL_KIND_NATIVE)
        snprintf(text, room, "native: %s", reasons[cc->why]);
    else if (cc->group >= 0)
        snprintf(text, room, "cluster, group %s", coll_cluster_group_names[cc->group]);
    else
        snprintf(text, room, "%s", kinds[cc->kind]);
}

static void place(const struct coll_comm *cc, char *text, size_t room) {
    if (cc->hosts == 1)
        snprintf(text, room, " on one host");
    else if (cc->hosts > 0)
        snprintf(text, room, " on %d hosts", cc->hosts);
}

/*
 * A line of a communicator's rank 0 when it is first used, and another one when it gets a private
 * duplicate later, or cannot have one.
 */
void coll_trace_communicator(MPI_Comm comm, struct coll_comm *cc) {
    char name[MPI_MAX_OBJECT_NAME] = "", what[128], where[32] = "", rules[64];
    int length;
    const int state = state_of(cc);
    if (!prints() || cc->told == state)
        return;
    cc->told = state;
    if (cc->rank != 0)
        return;
    PMPI_Comm_get_name(comm, name, &length);
    describe(cc, what, sizeof what);
    place(cc, where, sizeof where);
    coll_describe_rules(cc, rules, sizeof rules);
    fprintf(stderr, "libcoll: communicator '%s': %d %s%s: %s; %s%s\n", name, cc->size,
            cc->size == 1 ? "rank" : "ranks", where, what,
            state == WITH_TWIN ? "a private duplicate" : "no private duplicate", rules);
}

/*
 * At MPI_Finalize: LIBCOLL_TRACE=1 prints what rank 0 of MPI_COMM_WORLD did, =all what every
 * rank did. Nothing is communicated, so it cannot hang a program that ends unevenly.
 */
void coll_trace_print(void) {
    int rank;
    const char *trace = getenv("LIBCOLL_TRACE");
    if (!prints() || trace == NULL)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0 && strcmp(trace, "all") != 0)
        return;
    if (coll_settings()->gpu_support != NULL)
        fprintf(stderr,
                "libcoll: rank %d: all calls are native: buffers may be on a GPU, says %s;"
                " LIBCOLL_HOST_BUFFERS=1 promises that none is\n",
                rank, coll_settings()->gpu_support);
    for (int index = 0; index < coll_routine_count && calls != NULL; ++index)
        print_row(rank, coll_routines[index].collective, coll_routines[index].name, calls[index],
                  "calls");
    for (int collective = 0; collective < COLL_COLLECTIVES; ++collective)
        print_row(rank, collective, "persistent, planned", starts[collective], "starts");
}
