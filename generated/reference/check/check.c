/*
 * `make check`: compares every routine of a library, and its MPI_ entry points, with the MPI
 * library's own, byte by byte, on MPI_COMM_WORLD and on communicators of other sizes and
 * orders made from it. Exit status 1 if anything differs.
 *
 *   check [quick|full]
 *
 * A full check tries all combinations on MPI_COMM_WORLD, and takes its time on many ranks;
 * unless told, more than FULL_MOST ranks get a quick one. Other communicators get a quick one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "conformance.h"

enum { FULL_MOST = 8 };

static int world_rank;

static int check_one(enum coll_collective collective, const struct coll_routine *routine,
                     const char *name, MPI_Comm comm, const char *comm_name,
                     enum conformance_level level, struct conformance_report *total) {
    struct conformance_report report;
    const struct coll_parameters none = {0};
    COLL_TRY(conformance_check(collective, routine, routine ? &routine->defaults : &none, comm,
                               level, &report));
    total->cases += report.cases;
    total->wrong += report.wrong;
    if (report.wrong != 0 && world_rank == 0)
        printf("WRONG %s %s on %s: %d of %d cases, first: %s\n", coll_collective_names[collective],
               name, comm_name, report.wrong, report.cases, report.first_wrong);
    return MPI_SUCCESS;
}

/* Every routine that the communicator allows, then the entry points. */
static int check_comm(MPI_Comm comm, const char *name, enum conformance_level level,
                      struct conformance_report *total) {
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(comm, &cc));
    for (int i = 0; i < coll_routine_count; ++i)
        if (coll_applicable(&coll_routines[i], cc, 1))
            COLL_TRY(check_one(coll_routines[i].collective, &coll_routines[i],
                               coll_routines[i].name, comm, name, level, total));
    for (int i = 0; i < COLL_COLLECTIVES; ++i)
        COLL_TRY(
            check_one((enum coll_collective)i, NULL, "MPI_ entry point", comm, name, level, total));
    return MPI_SUCCESS;
}

static int check_split(int color, int key, const char *name, struct conformance_report *total) {
    MPI_Comm comm;
    COLL_TRY(PMPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
    COLL_TRY(check_comm(comm, name, CONFORMANCE_QUICK, total));
    return PMPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    struct conformance_report total = {0};
    int size, all_wrong = 1;
    PMPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    enum conformance_level level = size <= FULL_MOST ? CONFORMANCE_FULL : CONFORMANCE_QUICK;
    if (argc > 1)
        level = strcmp(argv[1], "full") == 0 ? CONFORMANCE_FULL : CONFORMANCE_QUICK;
    int error = check_comm(MPI_COMM_WORLD, "MPI_COMM_WORLD", level, &total);
    if (error == MPI_SUCCESS)
        error = check_split(0, -world_rank, "the ranks in reverse", &total);
    if (error == MPI_SUCCESS)
        error = check_split(world_rank % 2, world_rank, "every other rank", &total);
    if (error != MPI_SUCCESS)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    PMPI_Allreduce(&total.wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("%d ranks: %d passed, %d failed\n", size, total.cases - total.wrong, total.wrong);
    MPI_Finalize();
    return all_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
