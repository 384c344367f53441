/* How the times of all ranks become one. */
#ifndef METRIC_H
#define METRIC_H

#include <stdlib.h>
#include <string.h>

#include <mpi.h>

/*
 * The time of a call is that of its slowest rank, or the mean over the ranks (Faraj 2006,
 * §4.1.2.2). If ranks come late, it is the mean, or the time from the last arrival to the last
 * exit.
 */
enum metric { METRIC_SLOWEST, METRIC_MEAN, METRIC_LAST, METRICS };

/* Return METRICS if the name is unknown. */
static inline enum metric metric_of(const char *name) {
    static const char *const names[METRICS] = {
        [METRIC_SLOWEST] = "slowest", [METRIC_MEAN] = "mean", [METRIC_LAST] = "last"};
    int metric = 0;
    while (metric < METRICS && strcmp(names[metric], name) != 0)
        ++metric;
    return (enum metric)metric;
}

/*
 * The time of a repetition is the mean of its calls: seconds[] holds `count` repetitions of `calls`
 * calls each on every rank, and means[], which is 0 throughout, gets the `count` results on rank 0.
 */
static inline int metric_reduce(enum metric metric, const double *seconds, int count, int calls,
                                double *means, MPI_Comm comm) {
    const size_t total = (size_t)count * (size_t)calls;
    double *all = calloc(total + 1, sizeof *all);
    if (all == NULL)
        return MPI_ERR_NO_MEM;
    int size, error = PMPI_Comm_size(comm, &size);
    if (error == MPI_SUCCESS)
        error = PMPI_Reduce(seconds, all, count * calls, MPI_DOUBLE,
                            metric == METRIC_MEAN ? MPI_SUM : MPI_MAX, 0, comm);
    for (size_t i = 0; error == MPI_SUCCESS && i < total; ++i)
        means[i / (size_t)calls] += all[i] / (metric == METRIC_MEAN ? size : 1) / calls;
    free(all);
    return error;
}

/* What is known of a repetition in which ranks come late: the means of its calls, in seconds. */
struct lateness {
    double
        *mean; /* elapsed time, over the ranks: the average per node time of Faraj 2006, §4.2.1 */
    double *last;   /* from the last arrival to the last exit */
    double *spread; /* from the first arrival to the last: the worst case imbalance time, §4.2.1 */
};

/* Times after the last arrival are at least this long: where the clocks of two ranks differ by
 * more than the time, it could come out as nothing. */
static const double METRIC_LEAST = 1e-9;

/*
 * seconds[] and arrivals[] hold `count` repetitions of `calls` calls each on every rank; the
 * members of `out`, which are 0 throughout, get the `count` results on rank 0.
 */
static inline int metric_lateness(const double *seconds, const double *arrivals, int count,
                                  int calls, const struct lateness *out, MPI_Comm comm) {
    const size_t total = (size_t)count * (size_t)calls;
    double *mine = calloc(3 * total + 1, sizeof *mine), *most = calloc(3 * total + 1, sizeof *most);
    int error = mine == NULL || most == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (size_t i = 0; error == MPI_SUCCESS && i < total; ++i) {
        mine[i] = arrivals[i];
        mine[total + i] = -arrivals[i];
        mine[2 * total + i] = arrivals[i] + seconds[i];
    }
    if (error == MPI_SUCCESS)
        error = PMPI_Reduce(mine, most, (int)(3 * total), MPI_DOUBLE, MPI_MAX, 0, comm);
    for (size_t i = 0; error == MPI_SUCCESS && i < total; ++i) {
        const double last = most[2 * total + i] - most[i];
        out->last[i / (size_t)calls] += (last > METRIC_LEAST ? last : METRIC_LEAST) / calls;
        out->spread[i / (size_t)calls] += (most[i] + most[total + i]) / calls;
    }
    free(mine);
    free(most);
    if (error == MPI_SUCCESS)
        error = metric_reduce(METRIC_MEAN, seconds, count, calls, out->mean, comm);
    return error;
}

#endif
