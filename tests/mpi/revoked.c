/*
 * One rank revokes a communicator (ULFM) while the others are in a call on it that cannot end
 * without that rank: no rank is left waiting, in any routine, and the program goes on elsewhere.
 * Before that, all ranks make the same call: what a communicator gets at its first call is there.
 * With -DIN_SHARED_MEMORY, ranks of a host wait in memory that they share, where they can.
 */
#include <unistd.h>

#include "program.h"

#include "coll.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

enum { BYTES = 400, ROOM = 16 * BYTES, WHILE = 20000 /* µs */ };

static int rank, size;

static char out[ROOM], in[ROOM];
static int counts[PEERS_MOST], displacements[PEERS_MOST];

/* The arguments of any collective. Some have a root that gets the data, some one that has it. */
static struct coll_call call_on(MPI_Comm comm, enum coll_collective collective) {
    const int from_root = collective == COLL_BCAST || collective == COLL_SCATTER;
    struct coll_call call = {
        .collective = collective,
        .comm = comm,
        .sendbuf = out,
        .recvbuf = in,
        .send_count = BYTES,
        .send_type = MPI_BYTE,
        .recv_count = BYTES,
        .recv_type = MPI_BYTE,
        .op = MPI_BXOR,
        .root = from_root ? size - 1 : 0,
    };
    const struct coll_blocks blocks = {.counts = counts, .displacements = displacements};
    if (collective == COLL_ALLTOALLV)
        call.send_blocks = blocks;
    if (collective == COLL_ALLTOALLV || collective == COLL_ALLGATHERV)
        call.recv_blocks = blocks;
    if (collective == COLL_REDUCE_SCATTER)
        call.recv_blocks.counts = counts;
    return call;
}

static int run(const struct coll_routine *routine, MPI_Comm comm, struct coll_comm *cc) {
    struct coll_call call = call_on(comm, routine->collective);
    struct coll_parameters parameters = routine->defaults;
#ifdef IN_SHARED_MEMORY
    parameters.on_host = 2;
#endif
    EXPECT(coll_views[routine->collective]->measure(&call) == MPI_SUCCESS);
    return coll_run(routine, &call, cc, &parameters);
}

/* Whether every other rank needs the one that revokes; else the root does, or what is below it. */
static int needs_all(enum coll_collective collective) {
    return collective != COLL_BCAST && collective != COLL_SCATTER && collective != COLL_GATHER &&
           collective != COLL_REDUCE;
}

static void revoke_in(const struct coll_routine *routine) {
    MPI_Comm comm;
    struct coll_comm *cc;
    int come, error = MPI_SUCCESS, errors = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    EXPECT(coll_comm_get(comm, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(comm, cc) == MPI_SUCCESS);
    if (coll_applicable(routine, cc, BYTES)) {
        EXPECT(run(routine, comm, cc) == MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (rank == size - 1) {
            usleep(WHILE);
            EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
        } else {
            error = run(routine, comm, cc) != MPI_SUCCESS;
        }
        PMPI_Allreduce(&error, &errors, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(errors >= (needs_all(routine->collective) ? size - 1 : 1));
        EXPECT(PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, cc->comm, &come, MPI_STATUS_IGNORE) !=
               MPI_SUCCESS);
        if (rank == 0)
            printf("%s %s\n", coll_collective_names[routine->collective], routine->name);
    }
    fflush(stdout);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < size; ++i) {
        counts[i] = BYTES;
        displacements[i] = i * BYTES;
    }
    for (int i = 0; i < coll_routine_count; ++i)
        if (!(coll_routines[i].constraints & COLL_UNPREPARED))
            revoke_in(&coll_routines[i]);
    return finish();
}
