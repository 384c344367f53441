/*
 * Says of every routine how much memory a call of so many bytes may take, and which one serves it:
 *
 *   bound COLLECTIVE NAME BYTES MEMORY
 *   choice COLLECTIVE BYTES NAME
 */
#include "dispatch.h"
#include "libcoll.h"
#include "program.h"

enum { STEP = 64 };

static double bound_of(const struct coll_routine *routine, int bytes, const struct coll_comm *cc) {
    const struct coll_call call = {
        .collective = routine->collective, .recv_type = MPI_BYTE, .bytes = bytes};
    return coll_scratch(routine, &routine->defaults, &call, cc);
}

static void print(enum coll_collective collective, int sizes, const struct coll_comm *cc) {
    const char *name = coll_collective_names[collective];
    for (int bytes = 1; bytes < sizes * STEP; bytes += STEP) {
        printf("choice %s %d %s\n", name, bytes, libcoll_choice(name, bytes, MPI_COMM_WORLD));
        for (int i = 0; i < coll_routine_count; ++i)
            if (coll_routines[i].collective == collective)
                printf("bound %s %s %d %.17g\n", name, coll_routines[i].name, bytes,
                       bound_of(&coll_routines[i], bytes, cc));
    }
}

int main(int argc, char **argv) {
    struct coll_comm *cc;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(coll_comm_get(MPI_COMM_WORLD, &cc) == MPI_SUCCESS);
    for (int i = 0; i < COLL_COLLECTIVES && rank == 0; ++i)
        print((enum coll_collective)i, atoi(argv[1]), cc);
    return finish();
}
