/*
 * The conformance check of the MPI_ entry points of a library that adapts, again and again, so that
 * candidates change while calls differ in types, operations, places and roots.
 *
 *   adapted ROUNDS [quick|full]
 *
 * Prints how many cases there were, and how many algorithms served. Exit status 1 if a result is
 * wrong, or if a collective with several candidates was served by one.
 */
#include "conformance.h"
#include "libcoll.h"
#include "program.h"

static int cases;

static void check(MPI_Comm comm, enum conformance_level level) {
    const struct coll_parameters none = {0};
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        struct conformance_report report;
        EXPECT(conformance_check((enum coll_collective)i, NULL, &none, comm, level, &report) ==
               MPI_SUCCESS);
        if (report.wrong > 0)
            fprintf(stderr, "WRONG %s: %d of %d cases, first: %s\n", coll_collective_names[i],
                    report.wrong, report.cases, report.first_wrong);
        EXPECT(report.wrong == 0);
        cases += report.cases;
    }
}

int main(int argc, char **argv) {
    int rank, size, provided;
    MPI_Comm comms[4];
    const int rounds = atoi(argv[argc > 1 ? 1 : 0]);
    const enum conformance_level level =
        argc > 2 && strcmp(argv[2], "full") == 0 ? CONFORMANCE_FULL : CONFORMANCE_QUICK;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
    for (int i = 0; i < rounds && failures == 0; ++i)
        for (int k = 0; k < 4 && failures == 0; ++k)
            check(comms[k], level);
    for (int k = 1; k < 4; ++k)
        MPI_Comm_free(&comms[k]);
    if (rank == 0)
        printf("%d\n", cases);
    return finish();
}
