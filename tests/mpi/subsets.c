/*
 * Makes a communicator of each argument, the ranks of MPI_COMM_WORLD that it names in its order
 * ("3 0 1"), and says what it is and which routines it has: `0 kind 3 group 1`, `0 routine alltoall
 * aapc_sender group 1`. Those that need to know where the ranks are, and the entry points, are
 * compared with the MPI library's own.
 */
#include "coll.h"
#include "conformance.h"
#include "libcoll.h"

#include "program.h"

enum { RANKS_MOST = 64, TOPOLOGY = COLL_NEEDS_CLUSTER | COLL_NEEDS_PLACES };

static MPI_Comm subset(const char *text) {
    int ranks[RANKS_MOST], count = 0, length;
    MPI_Group world, group;
    MPI_Comm comm;
    for (; sscanf(text, "%d%n", &ranks[count], &length) == 1; text += length)
        ++count;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, ranks, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return comm;
}

static void compare(enum coll_collective collective, const struct coll_routine *routine,
                    MPI_Comm comm) {
    const struct coll_parameters none = {0};
    struct conformance_report report = {0};
    EXPECT(conformance_check(collective, routine, routine ? &routine->defaults : &none, comm,
                             CONFORMANCE_QUICK, &report) == MPI_SUCCESS);
    EXPECT(report.cases > 0 && report.wrong == 0);
    if (report.wrong != 0)
        fprintf(stderr, "%s %s: %s\n", coll_collective_names[collective],
                routine ? routine->name : "entry point", report.first_wrong);
}

static void try_routines(int number, const struct coll_comm *cc, MPI_Comm comm) {
    for (int i = 0; i < coll_routine_count; ++i) {
        const struct coll_routine *routine = &coll_routines[i];
        if (!(routine->constraints & TOPOLOGY) || !coll_applicable(routine, cc, 1))
            continue;
        if (coll_routine_for(coll_find_routine(routine->collective, routine->name), cc) != routine)
            continue; /* its group has one of its own */
        if (cc->rank == 0)
            printf("%d routine %s %s group %d\n", number,
                   coll_collective_names[routine->collective], routine->name, routine->group);
        compare(routine->collective, routine, comm);
    }
}

static void try_entry_points(int number, const struct coll_comm *cc, MPI_Comm comm) {
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        const char *choice = libcoll_choice(coll_collective_names[i], 24, comm);
        if (cc->rank == 0)
            printf("%d choice %s %s\n", number, coll_collective_names[i], choice);
        compare((enum coll_collective)i, NULL, comm);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int number = 1; number < argc; ++number) {
        struct coll_comm *cc;
        MPI_Comm comm = subset(argv[number]);
        if (comm == MPI_COMM_NULL)
            continue;
        EXPECT(coll_comm_get(comm, &cc) == MPI_SUCCESS);
        if (cc->rank == 0)
            printf("%d kind %d group %d\n", number, cc->kind, cc->group);
        try_routines(number, cc, comm);
        try_entry_points(number, cc, comm);
        MPI_Comm_free(&comm);
    }
    return finish();
}
