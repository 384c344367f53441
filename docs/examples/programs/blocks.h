/*
 * The blocks of an alltoallv on this rank, by a file of counts. The file has a row for each rank:
 * how many bytes it has for rank 0, 1 and so on.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

struct blocks {
    int *counts, *displacements;
    unsigned char *data;
    int all;
};

/*
 * Say what is wrong, and end, on all ranks, as all know it: MPI_Abort on one might end the job
 * before the message is out.
 */
static void end_with(const char *program, const char *what, int rank) {
    if (rank == 0)
        fprintf(stderr, "%s: %s\n", program, what);
    MPI_Finalize();
    exit(2);
}

/* Read the number of a pair. All ranks read the same file, so all end if it is none. */
static int read_count(FILE *file, const char *program, int rank, int size) {
    int count;
    if (fscanf(file, "%d", &count) != 1 || count < 0) {
        if (rank == 0)
            fprintf(stderr, "%s: COUNTS needs %d rows of %d numbers\n", program, size, size);
        MPI_Finalize();
        exit(2);
    }
    return count;
}

/* Whether something holds on any rank. */
static int any(int yes) {
    int all;
    PMPI_Allreduce(&yes, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return all;
}

static struct blocks room_for_blocks(int size) {
    struct blocks made = {.counts = calloc((size_t)size, sizeof(int)),
                          .displacements = calloc((size_t)size, sizeof(int))};
    if (made.counts == NULL || made.displacements == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return made;
}

/* Whether there is room for the blocks: their bytes are counted by an int. */
static int place_blocks(struct blocks *blocks, int rank, int size) {
    for (int i = 0; i < size; ++i) {
        blocks->displacements[i] = blocks->all;
        if (blocks->counts[i] > INT_MAX - blocks->all)
            return 0;
        blocks->all += blocks->counts[i];
    }
    blocks->data = malloc((size_t)blocks->all + 1);
    if (blocks->data == NULL)
        return 0;
    memset(blocks->data, rank, (size_t)blocks->all + 1);
    return 1;
}

/* What this rank sends, and what it receives. */
static void read_blocks(const char *path, const char *program, struct blocks *out,
                        struct blocks *in) {
    int rank, size, more;
    FILE *file = fopen(path, "r");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (any(file == NULL))
        end_with(program, "cannot read the file of counts", rank);
    *out = room_for_blocks(size);
    *in = room_for_blocks(size);
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            const int count = read_count(file, program, rank, size);
            if (from == rank)
                out->counts[to] = count;
            if (to == rank)
                in->counts[from] = count;
        }
    if (fscanf(file, "%d", &more) == 1)
        end_with(program, "COUNTS is for more ranks", rank);
    fclose(file);
    const int fits = place_blocks(out, rank, size) && place_blocks(in, rank, size);
    if (any(!fits))
        end_with(program, "a rank has no room for its bytes", rank);
}

static int wrong_bytes(const struct blocks *in) {
    int size, wrong = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int from = 0; from < size; ++from)
        for (int i = 0; i < in->counts[from]; ++i)
            wrong += in->data[in->displacements[from] + i] != from % 256;
    return wrong;
}

/* A message between every two ranks, so that no call waits for a connection to be made. */
static void connect_all(void) {
    int rank, size;
    char out = 0, in;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 1; step < size; ++step)
        MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + step) % size, 0, &in, 1, MPI_CHAR,
                     (rank - step + size) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void release_blocks(struct blocks *blocks) {
    free(blocks->counts);
    free(blocks->displacements);
    free(blocks->data);
}

#endif
