/*
 * The first ten alltoallv calls of a pattern on a communicator, by libcoll and by the MPI library's
 * own routine in turn: what libcoll needs to recognise the pattern is in its times.
 *
 *   first_calls COUNTS [ROUNDS]
 *
 * The file COUNTS has a row for each rank: how many bytes it has for rank 0, 1 and so on. The first
 * round is on MPI_COMM_WORLD, so it also has what libcoll prepares once in a process. Each further
 * round is on a new duplicate of it. A line tells what the ten calls of a round took together; a
 * call takes as long as the slowest rank.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { CALLS = 10 };

struct blocks {
    int *counts, *displacements;
    unsigned char *data;
    int all;
};

static int rank, size;

/* Read the number of a pair. All ranks read the same file, so all end if it is none: MPI_Abort on
 * one might end the job before the message is out. */
static int read_count(FILE *file) {
    int count;
    if (fscanf(file, "%d", &count) != 1 || count < 0) {
        if (rank == 0)
            fprintf(stderr, "first_calls: COUNTS needs %d rows of %d numbers\n", size, size);
        MPI_Finalize();
        exit(2);
    }
    return count;
}

static struct blocks room(void) {
    struct blocks made = {.counts = calloc((size_t)size, sizeof(int)),
                          .displacements = calloc((size_t)size, sizeof(int))};
    if (made.counts == NULL || made.displacements == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return made;
}

static void place(struct blocks *blocks) {
    for (int i = 0; i < size; ++i) {
        blocks->displacements[i] = blocks->all;
        if (blocks->counts[i] > INT_MAX - blocks->all)
            MPI_Abort(MPI_COMM_WORLD, 2);
        blocks->all += blocks->counts[i];
    }
    blocks->data = malloc((size_t)blocks->all + 1);
    if (blocks->data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(blocks->data, rank, (size_t)blocks->all + 1);
}

static void read_blocks(const char *path, struct blocks *out, struct blocks *in) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "first_calls: cannot read %s\n", path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    *out = room();
    *in = room();
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            const int count = read_count(file);
            if (from == rank)
                out->counts[to] = count;
            if (to == rank)
                in->counts[from] = count;
        }
    fclose(file);
    place(out);
    place(in);
}

/* A message between every two ranks, so that no call waits for a connection to be made. */
static void connect_all(void) {
    char out = 0, in;
    for (int step = 1; step < size; ++step)
        MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + step) % size, 0, &in, 1, MPI_CHAR,
                     (rank - step + size) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double timed(int is_native, const struct blocks *out, const struct blocks *in,
                    MPI_Comm comm) {
    double took, slowest;
    memset(in->data, -1, (size_t)in->all);
    PMPI_Barrier(comm);
    const double start = MPI_Wtime();
    if (is_native)
        PMPI_Alltoallv(out->data, out->counts, out->displacements, MPI_BYTE, in->data, in->counts,
                       in->displacements, MPI_BYTE, comm);
    else
        MPI_Alltoallv(out->data, out->counts, out->displacements, MPI_BYTE, in->data, in->counts,
                      in->displacements, MPI_BYTE, comm);
    took = MPI_Wtime() - start;
    PMPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm);
    return slowest;
}

static int wrong_bytes(const struct blocks *in) {
    int wrong = 0;
    for (int from = 0; from < size; ++from)
        for (int i = 0; i < in->counts[from]; ++i)
            wrong += in->data[in->displacements[from] + i] != from % 256;
    return wrong;
}

int main(int argc, char **argv) {
    struct blocks out, in;
    int wrong = 0, all_wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2) {
        if (rank == 0)
            fprintf(stderr, "usage: first_calls COUNTS [ROUNDS]\n");
        MPI_Finalize();
        return 2;
    }
    const int rounds = argc > 2 ? atoi(argv[2]) : 3;
    read_blocks(argv[1], &out, &in);
    connect_all();
    for (int round = 0; round < rounds; ++round) {
        double sums[2] = {0, 0}; /* of libcoll, of the MPI library */
        MPI_Comm comm = MPI_COMM_WORLD;
        if (round > 0)
            PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < 2 * CALLS; ++call) {
            const int is_native = (call + call / 2 + round) % 2;
            sums[is_native] += timed(is_native, &out, &in, comm);
            wrong += wrong_bytes(&in);
        }
        if (rank == 0)
            printf("round %d: library %.6f s, native %.6f s\n", round, sums[0], sums[1]);
        if (round > 0)
            MPI_Comm_free(&comm);
    }
    PMPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d rounds of %d calls\n", all_wrong ? "wrong" : "right", rounds, CALLS);
    struct blocks both[] = {out, in};
    for (int i = 0; i < 2; ++i) {
        free(both[i].counts);
        free(both[i].displacements);
        free(both[i].data);
    }
    MPI_Finalize();
    return all_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
