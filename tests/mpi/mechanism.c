/*
 * A timing mechanism with a clock, a barrier, computation and calls that are not real, on rank 0
 * of 2. Prints what it did (t: looked at the clock, b: barrier, k: computed, c: called), how much
 * it computed each time, and the seconds that it gives. Call i takes 10 (i + 1) s.
 *
 *   mechanism CALLS BOUND RANK FAILING-CALL
 */
#include <stdio.h>
#include <stdlib.h>

#include "timing.h"

#ifndef MECHANISM
#define MECHANISM by_mpptest
#endif
extern const struct timing MECHANISM;

enum { MOST = 1000 };
static struct {
    double clock;
    char trace[MOST];
    long computed[MOST];
    int steps, computations, calls, rank, failing;
} seen;

static void note(char step, double seconds) {
    seen.trace[seen.steps++] = step;
    seen.clock += seconds;
}

double PMPI_Wtime(void) {
    note('t', 0);
    return seen.clock;
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank) {
    (void)comm;
    *rank = seen.rank;
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size) {
    (void)comm;
    *size = 2;
    return MPI_SUCCESS;
}

/* Of two ranks, each sends one message in a barrier. */
int PMPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                  void *in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                  MPI_Status *status) {
    (void)out, (void)out_count, (void)out_type, (void)to, (void)out_tag, (void)in, (void)in_count;
    (void)in_type, (void)from, (void)in_tag, (void)comm, (void)status;
    note('b', 1000);
    return MPI_SUCCESS;
}

void timing_compute(long bound) {
    seen.computed[seen.computations++] = bound;
    note('k', 100000);
}

static int call(const void *what) {
    note('c', *(const double *)what * ++seen.calls);
    return seen.calls == seen.failing ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void print(const struct timed *timed, const double *seconds) {
    printf("%s\n", seen.trace);
    for (int i = 0; i < seen.computations; ++i)
        printf("%ld ", seen.computed[i]);
    printf("\n");
    for (int i = 0; i < (MECHANISM.each_call ? timed->calls : 1); ++i)
        printf("%.9g ", seconds[i]);
    printf("\n");
}

int main(int argc, char **argv) {
    const double unit = 10;
    struct timed timed = {.call = call, .what = &unit, .comm = MPI_COMM_WORLD};
    double seconds[MOST] = {0};
    if (argc != 5)
        return 2;
    timed.calls = atol(argv[1]);
    timed.bound = atol(argv[2]);
    seen.rank = atoi(argv[3]);
    seen.failing = atoi(argv[4]);
    const int error = MECHANISM.repeat(&timed, seconds);
    print(&timed, seconds);
    return error == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
