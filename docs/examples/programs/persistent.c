/*
 * A persistent collective with libcoll's plan and in the MPI library's own form, timed in turn: the
 * slowest rank's time of MPI_Start and MPI_Wait; medians, and the median of the ratios of pairs.
 *
 *   persistent BYTES REPETITIONS [COLLECTIVE]
 *   persistent COUNTS REPETITIONS alltoallv
 *
 * BYTES are per pair of ranks in an alltoall, the default; per rank in an allgather, gather,
 * scatter and reduce_scatter_block; else of the whole message. Reductions add up integers. The file
 * COUNTS has a row for each rank: how many bytes it has for rank 0, 1 and so on.
 *
 * Two more lines tell the means, and what the init of each form took on the slowest rank. Before
 * them, all ranks are connected.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "blocks.h"

enum { PLANNED, NATIVE, RATIO, ROWS };

/*
 * Buffers with room for `bytes` for each rank; `counts` and `starts` cut a whole message into one
 * block per rank.
 */
struct data {
    char *send, *recv;
    int bytes, *counts, *starts;
    struct blocks out, in; /* of an alltoallv */
    MPI_Request requests[2];
};

#define WORLD MPI_COMM_WORLD, MPI_INFO_NULL
#define INIT(NAME, ...)                                                                            \
    (form == PLANNED ? MPI_##NAME##_init(__VA_ARGS__, &data->requests[PLANNED])                    \
                     : PMPI_##NAME##_init(__VA_ARGS__, &data->requests[NATIVE]))

/* Elements of so many bytes. */
static int integers(int bytes) {
    return bytes / (int)sizeof(int);
}

static void alltoall(struct data *data, int form) {
    INIT(Alltoall, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE, WORLD);
}

static void allgather(struct data *data, int form) {
    INIT(Allgather, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE, WORLD);
}

static void allgatherv(struct data *data, int form) {
    INIT(Allgatherv, data->send, data->counts[0], MPI_INT, data->recv, data->counts, data->starts,
         MPI_INT, WORLD);
}

static void allreduce(struct data *data, int form) {
    INIT(Allreduce, data->send, data->recv, integers(data->bytes), MPI_INT, MPI_SUM, WORLD);
}

static void alltoallv(struct data *data, int form) {
    INIT(Alltoallv, data->out.data, data->out.counts, data->out.displacements, MPI_BYTE,
         data->in.data, data->in.counts, data->in.displacements, MPI_BYTE, WORLD);
}

static void barrier(struct data *data, int form) {
    INIT(Barrier, WORLD);
}

static void bcast(struct data *data, int form) {
    INIT(Bcast, data->send, data->bytes, MPI_BYTE, 0, WORLD);
}

static void gather(struct data *data, int form) {
    INIT(Gather, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE, 0, WORLD);
}

static void reduce(struct data *data, int form) {
    INIT(Reduce, data->send, data->recv, integers(data->bytes), MPI_INT, MPI_SUM, 0, WORLD);
}

static void reduce_scatter(struct data *data, int form) {
    INIT(Reduce_scatter, data->send, data->recv, data->counts, MPI_INT, MPI_SUM, WORLD);
}

static void reduce_scatter_block(struct data *data, int form) {
    INIT(Reduce_scatter_block, data->send, data->recv, integers(data->bytes), MPI_INT, MPI_SUM,
         WORLD);
}

static void scatter(struct data *data, int form) {
    INIT(Scatter, data->send, data->bytes, MPI_BYTE, data->recv, data->bytes, MPI_BYTE, 0, WORLD);
}

static const struct {
    const char *name;
    void (*init)(struct data *data, int form);
} collectives[] = {
    {"alltoall", alltoall},
    {"alltoallv", alltoallv},
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

/* The place of a collective in the list, or -1. */
static int place_of(const char *name) {
    const int count = sizeof collectives / sizeof *collectives;
    for (int i = 0; i < count; ++i)
        if (strcmp(name, collectives[i].name) == 0)
            return i;
    return -1;
}

static void refuse(int rank) {
    if (rank == 0)
        fprintf(stderr, "usage: persistent BYTES REPETITIONS [COLLECTIVE]\n"
                        "       persistent COUNTS REPETITIONS alltoallv\n");
    MPI_Finalize();
    exit(2);
}

/* A number from `least` upwards, or -1. */
static int number_of(const char *text, int least) {
    char *end;
    const long number = strtol(text, &end, 10);
    return *text == '\0' || *end != '\0' || number < least || number > 1 << 30 ? -1 : (int)number;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double slowest_since(double start) {
    const double took = MPI_Wtime() - start;
    double slowest;
    PMPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static double timed_init(struct data *data, int collective, int form) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    collectives[collective].init(data, form);
    return slowest_since(start);
}

static double timed(MPI_Request *request) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return slowest_since(start);
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
    release_blocks(&data->out);
    release_blocks(&data->in);
}

int main(int argc, char **argv) {
    static const char *const names[] = {"planned, ms", "native, ms", "native / planned"};
    const int pairs = argc > 2 ? number_of(argv[2], 1) : 9;
    const char *name = argc > 3 ? argv[3] : "alltoall";
    const int collective = place_of(name), is_irregular = strcmp(name, "alltoallv") == 0;
    const int bytes = is_irregular ? 0 : argc > 1 ? number_of(argv[1], 0) : 32768;
    double *rows[ROWS], init[2], sum[ROWS] = {0};
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (collective < 0 || bytes < 0 || pairs < 0)
        refuse(rank);
    struct data data = allocate(bytes, size);
    if (is_irregular)
        read_blocks(argv[1], "persistent", &data.out, &data.in);
    for (int i = 0; i < ROWS; ++i)
        rows[i] = calloc((size_t)pairs, sizeof *rows[i]);
    connect_all();
    for (int form = PLANNED; form <= NATIVE; ++form) {
        init[form] = 1e3 * timed_init(&data, collective, form);
        if (is_irregular)
            memset(data.in.data, -1, (size_t)data.in.all);
        timed(&data.requests[form]);
        if (is_irregular && wrong_bytes(&data.in) > 0) {
            fprintf(stderr, "persistent: wrong data on rank %d\n", rank);
            MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        }
    }
    for (int pair = 0; pair < pairs; ++pair) {
        const int first = pair % 2;
        rows[first][pair] = 1e3 * timed(&data.requests[first]);
        rows[!first][pair] = 1e3 * timed(&data.requests[!first]);
        rows[RATIO][pair] = rows[NATIVE][pair] / rows[PLANNED][pair];
    }
    for (int i = 0; i < ROWS; ++i) {
        for (int pair = 0; pair < pairs; ++pair)
            sum[i] += rows[i][pair];
        qsort(rows[i], (size_t)pairs, sizeof *rows[i], compare);
        if (rank == 0)
            printf("%-17s median %8.2f, %8.2f to %8.2f\n", names[i], rows[i][pairs / 2], rows[i][0],
                   rows[i][pairs - 1]);
        free(rows[i]);
    }
    if (rank == 0)
        printf("mean: planned %.3f ms, native %.3f ms\n", sum[PLANNED] / pairs,
               sum[NATIVE] / pairs);
    if (rank == 0)
        printf("init: planned %.3f ms, native %.3f ms\n", init[PLANNED], init[NATIVE]);
    release(&data);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
