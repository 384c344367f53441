/* Meetings: one reduce to rank 0, one broadcast, on the private communicator. */
#include <math.h>
#include <pthread.h>

#include "adaptive.h"
#include "ticks.h"

enum { NUMBERS = sizeof(struct coll_triple) / sizeof(double) };

/* The calls of a stage before its last ITER ones are told as so many means at most: see end_of. */
enum { EARLY = 32 };

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
 * One mean time is told of the calls from `begin` to the one before this. On a slow link, a number
 * for each of hundreds of calls would take longer than a call. The last ITER calls, which say what
 * is the case now, are told one by one.
 */
static int end_of(int begin, int calls) {
    const int early = calls - coll_settings()->adaptive->iterations;
    const int width = early > EARLY ? (early + EARLY - 1) / EARLY : 1;
    if (begin >= early)
        return begin + 1;
    return begin + width < early ? begin + width : early;
}

int coll_told_most(void) {
    return EARLY + coll_settings()->adaptive->iterations + COLL_STAGE_FACTS;
}

/*
 * What this rank tells: the times of the calls; after them, what it saw of its call sites, and what
 * the meeting before took it. Rank 0 is the root, so it leaves a meeting before the others have the
 * broadcast: its time never is the least.
 */
static int fill(struct coll_triple *own, const struct coll_situation *situation,
                const struct coll_pattern *pattern, const struct coll_comm *cc) {
    const double tick = coll_seconds_per_tick(), hash = coll_site_hash(pattern);
    const double met = situation->met_s;
    int count = 0;
    for (int begin = 0, end; begin < situation->done; begin = end) {
        double ticks = 0;
        end = end_of(begin, situation->done);
        for (int i = begin; i < end; ++i)
            ticks += (double)situation->ticks[i];
        const double seconds = tick * ticks / (end - begin);
        own[count++] = (struct coll_triple){seconds, seconds, seconds};
    }
    own[count++] = (struct coll_triple){pattern->strange, hash, hash};
    const int is_hidden = !situation->met_between && cc->rank == 0 && cc->size > 1;
    own[count++] = (struct coll_triple){met, met, is_hidden ? HUGE_VAL : met};
    return count;
}

void coll_read_report(const struct coll_comm *cc, const struct coll_situation *situation, int calls,
                      struct coll_report *report) {
    double *mean = cc->adaptive->times, *most = mean + calls, skew = 0;
    const struct coll_triple *told = cc->adaptive->all;
    int single = 0; /* calls that are told one by one */
    for (int begin = 0, end; begin < calls; begin = end, ++told) {
        end = end_of(begin, calls);
        for (int i = begin; i < end; ++i) {
            mean[i] = told->sum / cc->size;
            most[i] = told->most;
        }
        if (end == begin + 1) {
            skew += told->most - told->least;
            ++single;
        }
    }
    report->heard = (struct coll_heard){
        .calls = calls, .mean_s = mean, .max_s = most, .skew_s = skew / (single > 0 ? single : 1)};
    report->single = single;
    report->strange = told[0].sum;
    report->alike = told[0].most == told[0].least;
    report->meeting_s = situation->met_between ? told[1].sum / cc->size : told[1].least;
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
    const int count = fill(adaptive->own, situation, pattern, cc);
    COLL_TRY(
        PMPI_Reduce(adaptive->own, adaptive->all, count, triple_type, combine_op, 0, cc->comm));
    if (cc->rank == 0)
        coll_read_report(cc, situation, calls, report);
    return MPI_SUCCESS;
}

int coll_begin_report(const struct coll_comm *cc, const struct coll_situation *situation,
                      const struct coll_pattern *pattern, MPI_Request *request) {
    const struct coll_adaptive *adaptive = cc->adaptive;
    const int count = fill(adaptive->own, situation, pattern, cc);
    return PMPI_Ireduce(adaptive->own, adaptive->all, count, triple_type, combine_op, 0, cc->comm,
                        request);
}

int coll_tell(const struct coll_comm *cc, struct coll_told *told) {
    return PMPI_Bcast(told, sizeof *told / sizeof(int), MPI_INT, 0, cc->comm);
}

int coll_begin_to_tell(const struct coll_comm *cc, struct coll_told *told, MPI_Request *request) {
    return PMPI_Ibcast(told, sizeof *told / sizeof(int), MPI_INT, 0, cc->comm, request);
}
