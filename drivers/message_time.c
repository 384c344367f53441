/* The time of a message: ping-pong of some pairs of ranks, one pair after the other. */
#include "message_time.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "timing.h"

enum { PAIRS = 4, TAG = 0, TRIPS_LEAST = 3, TRIPS_MOST = 100 };

/*
 * A pair makes as many round trips as take so many seconds. A long trip is made once. After a dear
 * one, no other pair plays.
 */
static const double PAIR_SECONDS = 0.1, LONG_TRIP = 1, DEAR_TRIP = 5;

static int round_trip(MPI_Comm comm, char *data, int bytes, int other, int begins) {
    if (begins)
        TIMING_TRY(PMPI_Send(data, bytes, MPI_BYTE, other, TAG, comm));
    TIMING_TRY(PMPI_Recv(data, bytes, MPI_BYTE, other, TAG, comm, MPI_STATUS_IGNORE));
    return begins ? MPI_SUCCESS : PMPI_Send(data, bytes, MPI_BYTE, other, TAG, comm);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median; sorts the values. */
static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/*
 * The first round trip tells how many there are to be, and does not count unless it is long. The
 * median counts: the shortest ones may have gone through queues that were still empty.
 */
static int play(MPI_Comm comm, char *data, int bytes, int other, int begins, double *trip) {
    double times[TRIPS_MOST];
    double start = PMPI_Wtime();
    TIMING_TRY(round_trip(comm, data, bytes, other, begins));
    const double took = fmax(PMPI_Wtime() - start, 1e-9);
    const int wanted = (int)fmin(fmax(PAIR_SECONDS / took, TRIPS_LEAST), TRIPS_MOST);
    int trips = took > LONG_TRIP ? 0 : wanted;
    if (begins)
        TIMING_TRY(PMPI_Send(&trips, 1, MPI_INT, other, TAG, comm));
    else
        TIMING_TRY(PMPI_Recv(&trips, 1, MPI_INT, other, TAG, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < trips; ++i) {
        start = PMPI_Wtime();
        TIMING_TRY(round_trip(comm, data, bytes, other, begins));
        times[i] = PMPI_Wtime() - start;
    }
    *trip = trips > 0 ? median(times, trips) : took;
    return MPI_SUCCESS;
}

/* The host of each rank, as a number. */
static int find_hosts(MPI_Comm comm, uint64_t *hosts) {
    char name[256] = "";
    uint64_t mine = 1469598103934665603U;
    gethostname(name, sizeof name - 1);
    for (const char *letter = name; *letter != '\0'; ++letter)
        mine = (mine ^ (unsigned char)*letter) * 1099511628211U;
    return PMPI_Allgather(&mine, 1, MPI_UINT64_T, hosts, 1, MPI_UINT64_T, comm);
}

/* A rank half of the ranks away, or the next one after it on another host; else any other. */
static int partner_of(int rank, int size, const uint64_t *hosts) {
    const int far = (rank + size / 2) % size;
    for (int i = 0; i < size; ++i)
        if (hosts[(far + i) % size] != hosts[rank])
            return (far + i) % size;
    return far;
}

static int play_pairs(MPI_Comm comm, char *data, int bytes, const uint64_t *hosts, double *trip) {
    int rank, size;
    double times[PAIRS];
    TIMING_TRY(PMPI_Comm_rank(comm, &rank));
    TIMING_TRY(PMPI_Comm_size(comm, &size));
    int pairs = size < PAIRS ? size : PAIRS;
    for (int i = 0; i < pairs; ++i) {
        const int one = (int)((long long)size * i / pairs), other = partner_of(one, size, hosts);
        if (rank == one)
            TIMING_TRY(play(comm, data, bytes, other, 1, &times[i]));
        else if (rank == other)
            TIMING_TRY(play(comm, data, bytes, one, 0, &times[i]));
        TIMING_TRY(PMPI_Bcast(&times[i], 1, MPI_DOUBLE, one, comm));
        if (times[i] > DEAR_TRIP)
            pairs = i + 1;
    }
    *trip = median(times, pairs);
    return MPI_SUCCESS;
}

int message_time(MPI_Comm comm, long bytes, double *seconds) {
    int size, error = PMPI_Comm_size(comm, &size);
    char *data = calloc((size_t)bytes + 1, 1);
    uint64_t *hosts = calloc((size_t)size, sizeof *hosts);
    double trip = 0;
    if (data == NULL || hosts == NULL)
        error = MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS && size > 1) { /* one rank sends no message */
        error = find_hosts(comm, hosts);
        if (error == MPI_SUCCESS)
            error = play_pairs(comm, data, (int)bytes, hosts, &trip);
    }
    *seconds = trip / 2;
    free(data);
    free(hosts);
    return error;
}
