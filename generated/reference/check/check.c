/*
 * `make check`: compares every routine of a library, and its MPI_ entry points, with the MPI
 * library's own, byte by byte, on MPI_COMM_WORLD and on communicators of other sizes and
 * orders made from it. Exit status 1 if anything differs.
 *
 *   check [quick|full] [--collectives NAME,NAME…] [--routines all|NAME,NAME…]
 *         [--delays MICROSECONDS]
 *
 * Exit status 2 if the command line is wrong.
 * With --delays, ranks sleep before calls: for some calls all of them, each for a random time of up
 * to that long, for other calls one of them for that long. Then only routines that watch arrivals
 * are checked, unless --routines names others.
 * MPI_ entry points are checked only if all routines are.
 * A full check tries all combinations on MPI_COMM_WORLD, and every value of every parameter
 * everywhere; it takes long on many ranks. A quick check tries few combinations, and a part of the
 * other values and communicators, a different part for each number of ranks. By default up to
 * FULL_MOST ranks get a full check.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "conformance.h"
#include "variants.h"

enum { FULL_MOST = 8, EXIT_USAGE = 2 };

/* The most ranks on which a full check tries all combinations with other values, too. */
enum { VALUES_FULL_MOST = 4 };

/* A quick check has one of this many other values, and of this many routines on other
 * communicators. */
enum { VALUES_SHARE = 12, ROUTINES_SHARE = 8 };

static int world_rank, world_size, delays;
static enum conformance_level level;
/* By collective: whether it is checked. */
static int chosen[COLL_COLLECTIVES];
/* The names of the routines that are checked, with commas between; NULL if none was told. */
static const char *routines;
static struct conformance_report totals[COLL_COLLECTIVES];

static int check_one(enum coll_collective collective, const struct coll_routine *routine,
                     const struct coll_parameters *parameters, MPI_Comm comm, const char *comm_name,
                     enum conformance_level thorough) {
    struct conformance_report report;
    COLL_TRY(conformance_check(collective, routine, parameters, comm, thorough, &report));
    totals[collective].cases += report.cases;
    totals[collective].wrong += report.wrong;
    if (report.wrong != 0 && world_rank == 0)
        printf("WRONG %s %s on %s: %d of %d cases, first: %s\n", coll_collective_names[collective],
               routine == NULL ? "MPI_ entry point" : routine->name, comm_name, report.wrong,
               report.cases, report.first_wrong);
    return MPI_SUCCESS;
}

/* Whether number `number` is in a quick check that takes one in `share`. */
static int in_turn(int number, int size, int share) {
    return level == CONFORMANCE_FULL || (number + size) % share == 0;
}

/* Whether all is checked, MPI_ entry points, too. */
static int is_all_wanted(void) {
    return routines == NULL ? delays == 0 : strcmp(routines, "all") == 0;
}

/* Whether a list with commas has a name of some length. */
static int has_name(const char *names, const char *name, size_t length) {
    for (;; ++names) {
        const size_t own = strcspn(names, ",");
        if (own == length && strncmp(names, name, length) == 0)
            return 1;
        names += own;
        if (*names == '\0')
            return 0;
    }
}

/* With delays and no names: check the routines that depend on the order of arrivals. */
static int is_wanted(const struct coll_routine *routine) {
    if (!chosen[routine->collective] || is_all_wanted())
        return chosen[routine->collective];
    if (routines == NULL)
        return (routine->constraints & COLL_WATCHES_ARRIVALS) != 0;
    return has_name(routines, routine->name, strlen(routine->name));
}

/* The routines that the communicator allows, with their defaults: all, or those in turn. */
static int check_routines(MPI_Comm comm, const struct coll_comm *cc, const char *name, int share,
                          enum conformance_level thorough) {
    for (int i = 0; i < coll_routine_count; ++i) {
        const struct coll_routine *routine = &coll_routines[i];
        const MPI_Aint bytes = routine->min_bytes > 1 ? routine->min_bytes : 1;
        if (is_wanted(routine) && coll_applicable(routine, cc, bytes) &&
            in_turn(i, cc->size, share))
            COLL_TRY(
                check_one(routine->collective, routine, &routine->defaults, comm, name, thorough));
    }
    return MPI_SUCCESS;
}

/* The same with other values of their parameters. */
static int check_variants(MPI_Comm comm, const struct coll_comm *cc, const char *name) {
    const enum conformance_level thorough =
        cc->size <= VALUES_FULL_MOST ? level : CONFORMANCE_QUICK;
    for (int i = 0; i < variant_count; ++i) {
        const struct coll_routine *routine = &coll_routines[variants[i].routine];
        const MPI_Aint bytes = routine->min_bytes > 1 ? routine->min_bytes : 1;
        if (is_wanted(routine) && coll_applicable(routine, cc, bytes) &&
            in_turn(i, cc->size, VALUES_SHARE))
            COLL_TRY(check_one(routine->collective, routine, &variants[i].parameters, comm, name,
                               thorough));
    }
    return MPI_SUCCESS;
}

static int check_entries(MPI_Comm comm, const char *name, enum conformance_level thorough) {
    const struct coll_parameters none = {0};
    for (int i = 0; i < COLL_COLLECTIVES && is_all_wanted(); ++i)
        if (chosen[i])
            COLL_TRY(check_one((enum coll_collective)i, NULL, &none, comm, name, thorough));
    return MPI_SUCCESS;
}

static int check_world(void) {
    const char *const name = "MPI_COMM_WORLD";
    struct coll_comm *cc;
    COLL_TRY(coll_comm_get(MPI_COMM_WORLD, &cc));
    COLL_TRY(check_routines(MPI_COMM_WORLD, cc, name, 1, level));
    COLL_TRY(check_variants(MPI_COMM_WORLD, cc, name));
    return check_entries(MPI_COMM_WORLD, name, level);
}

/* Check a communicator that was made from MPI_COMM_WORLD, and free it. */
static int check_part(MPI_Comm comm, const char *name) {
    struct coll_comm *cc;
    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    COLL_TRY(coll_comm_get(comm, &cc));
    COLL_TRY(check_routines(comm, cc, name, ROUTINES_SHARE, CONFORMANCE_QUICK));
    COLL_TRY(check_entries(comm, name, CONFORMANCE_QUICK));
    return PMPI_Comm_free(&comm);
}

static int check_split(int color, int key, const char *name) {
    MPI_Comm comm;
    COLL_TRY(PMPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
    return check_part(comm, name);
}

/* Whether this process is on a host of the group of that number in the topology file. */
static int in_group(int group) {
    for (int i = 0; i < coll_cluster_group_size(group); ++i)
        if (coll_cluster_host_of(group, i) == coll_cluster_host())
            return 1;
    return 0;
}

/* Communicators of other sizes and orders, and of the groups of the topology file. */
static int check_parts(void) {
    MPI_Comm comm;
    const int shuffled = (world_rank * 7 + 3) % world_size;
    COLL_TRY(check_split(0, -world_rank, "the ranks in reverse"));
    COLL_TRY(check_split(world_rank % 2, world_rank, "every other rank"));
    COLL_TRY(check_split(world_rank < 2 * world_size / 3 ? 0 : MPI_UNDEFINED, shuffled,
                         "the first two thirds, shuffled"));
    COLL_TRY(PMPI_Comm_dup(MPI_COMM_WORLD, &comm));
    COLL_TRY(check_part(comm, "a duplicate"));
    for (int group = 1; group < coll_cluster_groups; ++group)
        COLL_TRY(check_split(in_group(group) ? 0 : MPI_UNDEFINED, world_rank,
                             coll_cluster_group_names[group]));
    return MPI_SUCCESS;
}

static int cases_of_all(void) {
    int cases = 0;
    for (int i = 0; i < COLL_COLLECTIVES; ++i)
        cases += totals[i].cases;
    return cases;
}

/* Print rank 0's results, one line per collective and one for all; returns how many are wrong. */
static int print_totals(void) {
    int cases = 0, wrong = 0;
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        cases += totals[i].cases;
        wrong += totals[i].wrong;
        if (world_rank == 0 && chosen[i])
            printf("%-20s %7d passed, %d failed\n", coll_collective_names[i],
                   totals[i].cases - totals[i].wrong, totals[i].wrong);
    }
    if (world_rank == 0)
        printf("%d ranks: %d passed, %d failed\n", world_size, cases - wrong, wrong);
    return wrong;
}

/* The collective of a name of some length; COLL_COLLECTIVES if there is none. */
static int collective_of(const char *name, size_t length) {
    int i = 0;
    while (i < COLL_COLLECTIVES && (strlen(coll_collective_names[i]) != length ||
                                    strncmp(coll_collective_names[i], name, length) != 0))
        ++i;
    return i;
}

/* Choose the collectives of a list with commas; 0 if one of them does not exist. */
static int choose(const char *names) {
    memset(chosen, 0, sizeof chosen);
    for (;; ++names) {
        const size_t length = strcspn(names, ",");
        const int collective = collective_of(names, length);
        if (collective == COLL_COLLECTIVES)
            return 0;
        chosen[collective] = 1;
        names += length;
        if (*names == '\0')
            return 1;
    }
}

/* Whether some routine has a name of some length. */
static int is_routine(const char *name, size_t length) {
    for (int i = 0; i < coll_routine_count; ++i)
        if (has_name(coll_routines[i].name, name, length))
            return 1;
    return 0;
}

/* Choose the routines of a list with commas, or all; 0 if one of them does not exist. */
static int choose_routines(const char *names) {
    routines = names;
    for (; strcmp(routines, "all") != 0; ++names) {
        const size_t length = strcspn(names, ",");
        if (!is_routine(names, length))
            return 0;
        names += length;
        if (*names == '\0')
            return 1;
    }
    return 1;
}

static void choose_all(void) {
    for (int i = 0; i < COLL_COLLECTIVES; ++i)
        chosen[i] = 1;
}

/* A positive number of microseconds, or 0 if the text is none. */
static int microseconds(const char *text) {
    char *end;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number > 0 && number <= INT_MAX ? (int)number : 0;
}

/* Set level, collectives, routines and delays; the number of the argument that is wrong, or 0. */
static int read_arguments(int argc, char **argv) {
    choose_all();
    for (int i = 1; i < argc; ++i) {
        const int has_value = i + 1 < argc;
        if (strcmp(argv[i], "full") == 0) {
            level = CONFORMANCE_FULL;
        } else if (strcmp(argv[i], "quick") == 0) {
            level = CONFORMANCE_QUICK;
        } else if (strcmp(argv[i], "--delays") == 0 && has_value) {
            if ((delays = microseconds(argv[++i])) == 0)
                return i;
        } else if (strcmp(argv[i], "--collectives") == 0 && has_value) {
            if (!choose(argv[++i]))
                return i;
        } else if (strcmp(argv[i], "--routines") == 0 && has_value) {
            if (!choose_routines(argv[++i]))
                return i;
        } else {
            return i;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    int all_wrong = 1;
    PMPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    level = world_size <= FULL_MOST ? CONFORMANCE_FULL : CONFORMANCE_QUICK;
    const int wrong_argument = read_arguments(argc, argv);
    if (wrong_argument != 0) {
        if (world_rank == 0)
            fprintf(stderr,
                    "check: wrong argument \"%s\"; give: [quick|full] [--collectives NAME,NAME…] "
                    "[--routines all|NAME,NAME…] [--delays MICROSECONDS], with collectives as this "
                    "check prints them, routines of this library, and a positive number\n",
                    argv[wrong_argument]);
        MPI_Finalize();
        return EXIT_USAGE;
    }
    conformance_delay(delays);
    if (check_world() != MPI_SUCCESS || check_parts() != MPI_SUCCESS)
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    const int wrong = print_totals();
    if (cases_of_all() == 0 && world_rank == 0)
        fprintf(stderr,
                "check: nothing to check: these collectives have no such routine here; with "
                "delays and no --routines, only routines that watch arrivals\n");
    PMPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all_wrong == 0 && cases_of_all() > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
