/* The end of a stage: one reduce to rank 0, one broadcast, on the private communicator. */
#include <math.h>
#include <pthread.h>

#include "adaptive.h"
#include "ticks.h"

enum { NUMBERS = sizeof(struct coll_triple) / sizeof(double) };

static MPI_Datatype triple_type = MPI_DATATYPE_NULL;
static MPI_Op combine_op = MPI_OP_NULL;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void combine(void *in, void *inout, int *count, MPI_Datatype *type) {
    const struct coll_triple *theirs = in;
    struct coll_triple *ours = inout;
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
    if (triple_type == MPI_DATATYPE_NULL) {
        error = PMPI_Type_contiguous(NUMBERS, MPI_DOUBLE, &triple_type);
        if (error == MPI_SUCCESS && (error = PMPI_Type_commit(&triple_type)) != MPI_SUCCESS)
            PMPI_Type_free(&triple_type); /* the next call makes it again */
    }
    if (error == MPI_SUCCESS && combine_op == MPI_OP_NULL)
        error = PMPI_Op_create(combine, 1, &combine_op);
    pthread_mutex_unlock(&mutex);
    return error;
}

/* No communicators stay. */
void coll_meeting_finalize(void) {
    pthread_mutex_lock(&mutex);
    if (combine_op != MPI_OP_NULL)
        PMPI_Op_free(&combine_op);
    if (triple_type != MPI_DATATYPE_NULL)
        PMPI_Type_free(&triple_type);
    pthread_mutex_unlock(&mutex);
}

/*
 * What this rank tells: the time of each call; after them, what it saw of its call sites, and what
 * the meeting before took it. Rank 0 is the root, so it leaves before the others have the
 * broadcast: its time never is the least.
 */
static void fill(struct coll_triple *own, const struct coll_situation *situation,
                 const struct coll_pattern *pattern, const struct coll_comm *cc) {
    const double tick = coll_seconds_per_tick(), hash = coll_site_hash(pattern);
    for (int i = 0; i < situation->done; ++i) {
        const double seconds = tick * (double)situation->ticks[i];
        own[i] = (struct coll_triple){seconds, seconds, seconds};
    }
    own[situation->done] = (struct coll_triple){pattern->strange, hash, hash};
    const double met = situation->met_s;
    own[situation->done + 1] =
        (struct coll_triple){met, met, cc->rank == 0 && cc->size > 1 ? HUGE_VAL : met};
}

static void read_all(const struct coll_triple *all, int calls, int ranks, double *room,
                     struct coll_report *report) {
    double *mean = room, *most = room + calls, skew = 0;
    for (int i = 0; i < calls; ++i) {
        mean[i] = all[i].sum / ranks;
        most[i] = all[i].most;
        skew += all[i].most - all[i].least;
    }
    report->heard =
        (struct coll_heard){.calls = calls, .mean_s = mean, .max_s = most, .skew_s = skew / calls};
    report->meeting_s = all[calls + 1].least;
    report->strange = all[calls].sum;
    report->alike = all[calls].most == all[calls].least;
}

/* MPI has ended, and what it knew with it. */
void coll_meeting_restart(void) {
    pthread_mutex_lock(&mutex);
    combine_op = MPI_OP_NULL;
    triple_type = MPI_DATATYPE_NULL;
    pthread_mutex_unlock(&mutex);
}

int coll_can_meet(void) {
    return make_operation() == MPI_SUCCESS;
}

int coll_ask_all(const struct coll_comm *cc, int own, int *all) {
    return PMPI_Reduce(&own, all, 1, MPI_INT, MPI_MIN, 0, cc->comm);
}

int coll_report(const struct coll_comm *cc, const struct coll_situation *situation,
                const struct coll_pattern *pattern, struct coll_report *report) {
    const struct coll_adaptive *adaptive = cc->adaptive;
    const int calls = situation->done;
    fill(adaptive->own, situation, pattern, cc);
    COLL_TRY(PMPI_Reduce(adaptive->own, adaptive->all, calls + COLL_STAGE_FACTS, triple_type,
                         combine_op, 0, cc->comm));
    if (cc->rank == 0)
        read_all(adaptive->all, calls, cc->size, adaptive->times, report);
    return MPI_SUCCESS;
}

int coll_tell(const struct coll_comm *cc, struct coll_told *told) {
    return PMPI_Bcast(told, sizeof *told / sizeof(int), MPI_INT, 0, cc->comm);
}
