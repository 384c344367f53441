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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "blocks.h"

enum { CALLS = 10 };

static int rank, size;

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
    read_blocks(argv[1], "first_calls", &out, &in);
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
    release_blocks(&out);
    release_blocks(&in);
    MPI_Finalize();
    return all_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
