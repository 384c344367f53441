/* The beginning and the end of a recording; communicators that are made in between. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder.h"

recorder_any *recorder_next(const char *name, recorder_any *of_mpi) {
    void *found = dlsym(RTLD_NEXT, name);
    recorder_any *function = of_mpi;
    if (found != NULL)
        *(void **)&function = found;
    return function;
}

static MPI_Comm own = MPI_COMM_NULL; /* of the recorder's own messages */

/* Any number that no other MPI_COMM_WORLD of the job has. */
static uint64_t new_world(void) {
    const uint64_t mixed = (uint64_t)recorder_now() ^ (uint64_t)getpid() << 40;
    return mixed * 0x9E3779B97F4A7C15u;
}

/* After so many seconds without an answer, it is said what may be wrong. */
static const double patience = 20;

/*
 * Whether all ranks can record, which is told to all: else none does. A rank without a recorder
 * does not answer. Its first collective is mostly a blocking one, which MPI does not match with
 * this one, as it does not block.
 */
static int agree(int can) {
    int all = 0, done = 0;
    MPI_Request request;
    PMPI_Iallreduce(&can, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
    const double begin = PMPI_Wtime();
    while (!done && PMPI_Wtime() - begin < patience)
        PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
        fprintf(stderr, "stagegen recorder: MPI_Init waits for ranks that have no recorder, or are "
                        "late: all ranks need LD_PRELOAD and STAGEGEN_RECORD, and hosts need the "
                        "file that LD_PRELOAD names\n");
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    return all;
}

static int begin(int error, int can) {
    if (error != MPI_SUCCESS || recorder_output() == NULL || !agree(can))
        return error;
    MPI_Comm parent = MPI_COMM_NULL;
    struct recorder_header *store = recorder_store;
    PMPI_Comm_dup(MPI_COMM_WORLD, &own);
    PMPI_Comm_get_parent(&parent);
    int rank, ranks;
    PMPI_Comm_rank(own, &rank);
    PMPI_Comm_size(own, &ranks);
    recorder_set_clock(rank);
    uint64_t world = new_world();
    PMPI_Bcast(&world, 1, MPI_UINT64_T, 0, own);
    store->world = world;
    store->spawned = parent != MPI_COMM_NULL;
    store->rank = rank;
    recorder_begin_operations();
    recorder_begin_communicators();
    recorder_find(MPI_COMM_WORLD);
    recorder_find(MPI_COMM_SELF);
    store->ranks = ranks;
    recorder_compare_clocks(own);
    store->begun = recorder_now();
    atomic_store(&recorder_active, 1);
    return error;
}

RECORDER_EXPORT int MPI_Init(int *argc, char ***argv) {
    const int can = recorder_open();
    return begin(NEXT(MPI_Init)(argc, argv), can);
}

RECORDER_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    const int can = recorder_open();
    return begin(NEXT(MPI_Init_thread)(argc, argv, required, provided), can);
}

RECORDER_EXPORT int MPI_Finalize(void) {
    if (atomic_exchange(&recorder_active, 0)) {
        recorder_store->ended = recorder_now();
        recorder_compare_clocks(own);
        recorder_store->finished = 1;
        recorder_gather(own);
        PMPI_Comm_free(&own);
    }
    return NEXT(MPI_Finalize)();
}

/* clang-format off */
#define MAKES(name, declared, given, made)                                                         \
    RECORDER_EXPORT int name declared {                                                            \
        const int error = NEXT(name) given;                                                        \
        if (error == MPI_SUCCESS && (made) != NULL)                                                \
            recorder_name(*(made));                                                                \
        return error;                                                                              \
    }
/* clang-format on */

MAKES(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), made)
MAKES(MPI_Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made),
      made)
MAKES(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made),
      made)
MAKES(MPI_Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
      (comm, type, key, info, made), made)
MAKES(MPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made), made)
MAKES(MPI_Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
      (comm, group, tag, made), made)
MAKES(MPI_Intercomm_create,
      (MPI_Comm comm, int leader, MPI_Comm peers, int remote, int tag, MPI_Comm *made),
      (comm, leader, peers, remote, tag, made), made)
MAKES(MPI_Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made), made)
MAKES(MPI_Cart_create,
      (MPI_Comm comm, int count, const int sizes[], const int periods[], int reorder,
       MPI_Comm *made),
      (comm, count, sizes, periods, reorder, made), made)
MAKES(MPI_Cart_sub, (MPI_Comm comm, const int kept[], MPI_Comm *made), (comm, kept, made), made)
MAKES(MPI_Graph_create,
      (MPI_Comm comm, int count, const int index[], const int edges[], int reorder, MPI_Comm *made),
      (comm, count, index, edges, reorder, made), made)
MAKES(MPI_Dist_graph_create,
      (MPI_Comm comm, int count, const int sources[], const int degrees[], const int targets[],
       const int weights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, count, sources, degrees, targets, weights, info, reorder, made), made)
MAKES(MPI_Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int in_weights[], int out,
       const int targets[], const int out_weights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, in, sources, in_weights, out, targets, out_weights, info, reorder, made), made)
MAKES(MPI_Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made), made)
MAKES(MPI_Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made), made)
MAKES(MPI_Comm_join, (int socket, MPI_Comm *made), (socket, made), made)
MAKES(MPI_Comm_spawn,
      (const char *command, char *words[], int count, MPI_Info info, int root, MPI_Comm comm,
       MPI_Comm *made, int errors[]),
      (command, words, count, info, root, comm, made, errors), made)
MAKES(MPI_Comm_spawn_multiple,
      (int commands, char *command[], char **words[], const int counts[], const MPI_Info info[],
       int root, MPI_Comm comm, MPI_Comm *made, int errors[]),
      (commands, command, words, counts, info, root, comm, made, errors), made)
#if MPI_VERSION >= 4
MAKES(MPI_Comm_create_from_group,
      (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *made),
      (group, tag, info, handler, made), made)
MAKES(MPI_Intercomm_create_from_groups,
      (MPI_Group group, int leader, MPI_Group peers, int remote, const char *tag, MPI_Info info,
       MPI_Errhandler handler, MPI_Comm *made),
      (group, leader, peers, remote, tag, info, handler, made), made)
#endif
