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
 * Read the number of a pair. All ranks read the same file, so all end if it is none: MPI_Abort on
 * one might end the job before the message is out.
 */
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

static struct blocks room_for_blocks(int size) {
    struct blocks made = {.counts = calloc((size_t)size, sizeof(int)),
                          .displacements = calloc((size_t)size, sizeof(int))};
    if (made.counts == NULL || made.displacements == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return made;
}

static void place_blocks(struct blocks *blocks, int rank, int size) {
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

/* What this rank sends, and what it receives. */
static void read_blocks(const char *path, const char *program, struct blocks *out,
                        struct blocks *in) {
    int rank, size;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot read %s\n", program, path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
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
    fclose(file);
    place_blocks(out, rank, size);
    place_blocks(in, rank, size);
}

static int wrong_bytes(const struct blocks *in) {
    int size, wrong = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int from = 0; from < size; ++from)
        for (int i = 0; i < in->counts[from]; ++i)
            wrong += in->data[in->displacements[from] + i] != from % 256;
    return wrong;
}

static void release_blocks(struct blocks *blocks) {
    free(blocks->counts);
    free(blocks->displacements);
    free(blocks->data);
}

#endif
