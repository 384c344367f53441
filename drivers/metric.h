/* How the times of all ranks become one. */
#ifndef METRIC_H
#define METRIC_H

#include <stdlib.h>
#include <string.h>

#include <mpi.h>

/*
 * The time of a call is that of its slowest rank, or the mean over the ranks (Faraj 2006,
 * §4.1.2.2).
 */
enum metric { METRIC_SLOWEST, METRIC_MEAN, METRICS };

/* Return METRICS if the name is unknown. */
static inline enum metric metric_of(const char *name) {
    static const char *const names[METRICS] = {
        [METRIC_SLOWEST] = "slowest", [METRIC_MEAN] = "mean"};
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

#endif
