/* The end of a stage: one reduce to rank 0, one broadcast, on the private communicator. */
#include <pthread.h>
#include <stdlib.h>

#include "adaptive.h"
#include "ticks.h"

/* A number of each rank, over all ranks. */
struct triple {
    double sum, most, least;
};

enum { NUMBERS = sizeof(struct triple) / sizeof(double) };

static MPI_Datatype triple_type = MPI_DATATYPE_NULL;
static MPI_Op combine_op = MPI_OP_NULL;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void combine(void *in, void *inout, int *count, MPI_Datatype *type) {
    const struct triple *theirs = in;
    struct triple *ours = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        ours[i].sum += theirs[i].sum;
        ours[i].most = theirs[i].most > ours[i].most ? theirs[i].most : ours[i].most;
        ours[i].least = theirs[i].least < ours[i].least ? theirs[i].least : ours[i].least;
    }
}

static int make_operation(void) {
    int error = MPI_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (combine_op == MPI_OP_NULL) {
        error = PMPI_Type_contiguous(NUMBERS, MPI_DOUBLE, &triple_type);
        if (error == MPI_SUCCESS)
            error = PMPI_Type_commit(&triple_type);
        if (error == MPI_SUCCESS)
            error = PMPI_Op_create(combine, 1, &combine_op);
    }
    pthread_mutex_unlock(&mutex);
    return error;
}

/* No communicators stay. */
void coll_meeting_finalize(void) {
    pthread_mutex_lock(&mutex);
    if (combine_op != MPI_OP_NULL) {
        PMPI_Op_free(&combine_op);
        PMPI_Type_free(&triple_type);
    }
    pthread_mutex_unlock(&mutex);
}

/* What this rank tells: the time of each call; behind them, what it saw of its call sites. */
static void fill(struct triple *own, const struct coll_situation *situation,
                 const struct coll_pattern *pattern) {
    const double tick = coll_seconds_per_tick(), hash = coll_site_hash(pattern);
    for (int i = 0; i < situation->done; ++i) {
        const double seconds = tick * (double)situation->ticks[i];
        own[i] = (struct triple){seconds, seconds, seconds};
    }
    own[situation->done] = (struct triple){pattern->strange, hash, hash};
}

static void read_all(const struct triple *all, int calls, int ranks, double *room,
                     struct coll_report *report) {
    double *mean = room, *most = room + calls, skew = 0;
    for (int i = 0; i < calls; ++i) {
        mean[i] = all[i].sum / ranks;
        most[i] = all[i].most;
        skew += all[i].most - all[i].least;
    }
    report->heard =
        (struct coll_heard){.calls = calls, .mean_s = mean, .max_s = most, .skew_s = skew / calls};
    report->strange = all[calls].sum;
    report->alike = all[calls].most == all[calls].least;
}

/* MPI has ended, and what it knew with it. */
void coll_meeting_restart(void) {
    combine_op = MPI_OP_NULL;
    triple_type = MPI_DATATYPE_NULL;
}

int coll_report(const struct coll_comm *cc, const struct coll_situation *situation,
                const struct coll_pattern *pattern, double **room, struct coll_report *report) {
    const int calls = situation->done;
    const size_t count = (size_t)calls + 1;
    struct triple *own = malloc(count * sizeof *own);
    struct triple *all = cc->rank == 0 ? malloc(count * sizeof *all) : NULL;
    int error = MPI_ERR_NO_MEM;
    *room = cc->rank == 0 ? malloc(2 * count * sizeof **room) : NULL;
    if (own != NULL && (cc->rank != 0 || (all != NULL && *room != NULL)))
        error = make_operation();
    if (error == MPI_SUCCESS) {
        fill(own, situation, pattern);
        error = PMPI_Reduce(own, all, (int)count, triple_type, combine_op, 0, cc->comm);
    }
    if (error == MPI_SUCCESS && cc->rank == 0)
        read_all(all, calls, cc->size, *room, report);
    free(own);
    free(all);
    return error;
}

int coll_tell(const struct coll_comm *cc, struct coll_told *told) {
    return PMPI_Bcast(told, sizeof *told / sizeof(int), MPI_INT, 0, cc->comm);
}
