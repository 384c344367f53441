/*
 * A persistent collective with libcoll's plan and in the MPI library's own form, timed in turn: the
 * slowest rank's time of MPI_Start and MPI_Wait; medians, and the median of the ratios of pairs.
 *
 *   persistent BYTES REPETITIONS [COLLECTIVE]
 *
 * BYTES are per pair of ranks in an alltoall, the default; per rank in an allgather, gather,
 * scatter and reduce_scatter_block; else of the whole message. Reductions add up integers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { PLANNED, NATIVE, RATIO, ROWS };

/*
 * Buffers with room for `bytes` for each rank; `counts` and `starts` cut a whole message into one
 * block per rank.
 */
struct data {
    char *send, *recv;
    int bytes, *counts, *starts;
    MPI_Request requests[2];
};

#define WORLD MPI_COMM_WORLD, MPI_INFO_NULL
#define INIT_BOTH(NAME, ...)                                                                       \
    MPI_##NAME##_init(__VA_ARGS__, &data->requests[PLANNED]);                                      \
    PMPI_##NAME##_init(__VA_ARGS__, &data->requests[NATIVE])

/* Elements of so many bytes. */
static int integers(int bytes) {
    return bytes / (int)sizeof(int);
}

static void alltoall(struct data *data) {
    INIT_BOTH(Alltoall, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE,
              WORLD);
}

static void allgather(struct data *data) {
    INIT_BOTH(Allgather, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE,
              WORLD);
}

static void allgatherv(struct data *data) {
    INIT_BOTH(Allgatherv, data->send, data->counts[0], MPI_INT, data->recv, data->counts,
              data->starts, MPI_INT, WORLD);
}

static void allreduce(struct data *data) {
    INIT_BOTH(Allreduce, data->send, data->recv, integers(data->bytes), MPI_INT, MPI_SUM, WORLD);
}

static void barrier(struct data *data) {
    INIT_BOTH(Barrier, WORLD);
}

static void bcast(struct data *data) {
    INIT_BOTH(Bcast, data->send, data->bytes, MPI_BYTE, 0, WORLD);
}

static void gather(struct data *data) {
    INIT_BOTH(Gather, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE, 0,
              WORLD);
}

static void reduce(struct data *data) {
    INIT_BOTH(Reduce, data->send, data->recv, integers(data->bytes), MPI_INT, MPI_SUM, 0, WORLD);
}

static void reduce_scatter(struct data *data) {
    INIT_BOTH(Reduce_scatter, data->send, data->recv, data->counts, MPI_INT, MPI_SUM, WORLD);
}

static void reduce_scatter_block(struct data *data) {
    INIT_BOTH(Reduce_scatter_block, data->send, data->recv, integers(data->bytes), MPI_INT, MPI_SUM,
              WORLD);
}

static void scatter(struct data *data) {
    INIT_BOTH(Scatter, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE, 0,
              WORLD);
}

static const struct {
    const char *name;
    void (*init)(struct data *data);
} collectives[] = {
    {"alltoall", alltoall},
    {"allgather", allgather},
    {"allgatherv", allgatherv},
    {"allreduce", allreduce},
    {"barrier", barrier},
    {"bcast", bcast},
    {"gather", gather},
    {"reduce", reduce},
    {"reduce_scatter", reduce_scatter},
    {"reduce_scatter_block", reduce_scatter_block},
    {"scatter", scatter},
};

/* Make both requests of a collective; returns whether there is one of this name. */
static int init(const char *name, struct data *data) {
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; ++i)
        if (strcmp(name, collectives[i].name) == 0) {
            collectives[i].init(data);
            return 1;
        }
    return 0;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double timed(MPI_Request *request) {
    double took, slowest;
    PMPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    took = MPI_Wtime() - start;
    PMPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Whole messages are cut into equal blocks of integers. */
static struct data allocate(int bytes, int size) {
    struct data data = {.bytes = bytes};
    data.send = calloc((size_t)size, (size_t)bytes + 1);
    data.recv = calloc((size_t)size, (size_t)bytes + 1);
    data.counts = calloc((size_t)size, sizeof *data.counts);
    data.starts = calloc((size_t)size, sizeof *data.starts);
    for (int i = 0; i < size; ++i) {
        data.counts[i] = integers(bytes) / size;
        data.starts[i] = i * data.counts[i];
    }
    return data;
}

static void release(struct data *data) {
    MPI_Request_free(&data->requests[PLANNED]);
    MPI_Request_free(&data->requests[NATIVE]);
    free(data->send);
    free(data->recv);
    free(data->counts);
    free(data->starts);
}

int main(int argc, char **argv) {
    static const char *const names[] = {"planned, ms", "native, ms", "native / planned"};
    const int bytes = argc > 1 ? atoi(argv[1]) : 32768, pairs = argc > 2 ? atoi(argv[2]) : 9;
    const char *collective = argc > 3 ? argv[3] : "alltoall";
    double *rows[ROWS];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct data data = allocate(bytes, size);
    if (!init(collective, &data)) {
        fprintf(stderr, "persistent: no collective '%s'\n", collective);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    for (int i = 0; i < ROWS; ++i)
        rows[i] = calloc((size_t)pairs, sizeof *rows[i]);
    for (int i = PLANNED; i <= NATIVE; ++i)
        timed(&data.requests[i]);
    for (int pair = 0; pair < pairs; ++pair) {
        const int first = pair % 2;
        rows[first][pair] = 1e3 * timed(&data.requests[first]);
        rows[!first][pair] = 1e3 * timed(&data.requests[!first]);
        rows[RATIO][pair] = rows[NATIVE][pair] / rows[PLANNED][pair];
    }
    for (int i = 0; i < ROWS; ++i) {
        qsort(rows[i], (size_t)pairs, sizeof *rows[i], compare);
        if (rank == 0)
            printf("%-17s median %8.2f, %8.2f to %8.2f\n", names[i], rows[i][pairs / 2], rows[i][0],
                   rows[i][pairs - 1]);
        free(rows[i]);
    }
    release(&data);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
