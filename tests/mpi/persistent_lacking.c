/*
 * Inits of persistent collectives for which one rank has no memory: linked with --wrap for malloc
 * and its like, so that an allocation of the library fails on that rank, alone or with all after
 * it. The first one fails in the first init, the second one in the next, and so on, until an init
 * has had all that it asks for. Every rank gets through every init, and the bytes of native calls.
 *
 *   persistent_lacking
 */
#include "program.h"

#include "libcoll.h"

enum { BYTES = 20000 };

/* Allocations that succeed before one fails; -1: all succeed. */
static int left = -1, denied, is_lasting;

static int is_denied(void) {
    if (left != 0) {
        left -= left > 0;
        return 0;
    }
    ++denied;
    left = is_lasting ? 0 : -1;
    return 1;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes) {
    return is_denied() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return is_denied() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes) {
    return is_denied() ? NULL : __real_realloc(memory, bytes);
}

static struct blocks blocks; /* which a native request may look at until it is freed */

/* The persistent form of a call; 0 if it is of another collective. */
#define INIT(function, ...)                                                                        \
    if (strcmp(name, collective_of(#function)) == 0)                                               \
    return MPI_##function##_init(__VA_ARGS__, a->comm, MPI_INFO_NULL, request)

/* Names of collectives begin with a small letter. */
static const char *collective_of(const char *function) {
    static char name[40];
    snprintf(name, sizeof name, "%c%s", function[0] - 'A' + 'a', function + 1);
    return name;
}

static int init(const char *name, const struct arguments *a, MPI_Request *request) {
    const int *counts = blocks.counts, *places = blocks.displacements, n = a->recv_count;
    const MPI_Datatype type = a->recv_type;
    INIT(Allgather, a->send, n, type, a->recv, n, type);
    INIT(Allgatherv, a->send, n, type, a->recv, counts, places, type);
    INIT(Allreduce, a->send, a->recv, n, type, a->op);
    INIT(Alltoall, a->send, n, type, a->recv, n, type);
    INIT(Alltoallv, a->send, counts, places, type, a->recv, counts, places, type);
    INIT(Bcast, a->recv, n, type, a->root);
    INIT(Gather, a->send, n, type, a->recv, n, type, a->root);
    INIT(Reduce, a->send, a->recv, n, type, a->op, a->root);
    INIT(Reduce_scatter, a->send, a->recv, counts, type, a->op);
    INIT(Reduce_scatter_block, a->send, a->recv, n, type, a->op);
    INIT(Scatter, a->send, n, type, a->recv, n, type, a->root);
    EXPECT(strcmp(name, "barrier") == 0);
    return MPI_Barrier_init(a->comm, MPI_INFO_NULL, request);
}

/* An init in which the given allocation fails on a rank, and a call; whether it failed. */
static int try(const struct collective *collective, int poor, int number, char *data[3]) {
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int rank, size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    libcoll_choice(collective->name, BYTES, comm); /* what is known of the communicator is there */
    const size_t room = (size_t)(BYTES + 1) * (size_t)size;
    struct arguments arguments = {.send = data[0],
                                  .send_count = BYTES,
                                  .send_type = MPI_BYTE,
                                  .recv = data[1],
                                  .recv_count = BYTES,
                                  .recv_type = MPI_BYTE,
                                  .op = MPI_BXOR,
                                  .root = size - 1,
                                  .comm = comm};
    memcpy(data[1], data[0], room);
    memcpy(data[2], data[0], room);
    denied = 0;
    left = rank == poor ? number : -1;
    const int error = init(collective->name, &arguments, &request);
    left = -1;
    EXPECT(error == MPI_SUCCESS);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    arguments.recv = data[2];
    EXPECT(call(collective, &arguments, 1) == MPI_SUCCESS);
    EXPECT(memcmp(data[1], data[2], room) == 0);
    PMPI_Bcast(&denied, 1, MPI_INT, poor, comm);
    MPI_Comm_free(&comm);
    return denied > 0;
}

int main(int argc, char **argv) {
    int rank, size;
    char *data[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const size_t room = (size_t)(BYTES + 1) * (size_t)size;
    unsigned state = 1 + (unsigned)rank;
    for (int i = 0; i < 3; ++i)
        data[i] = malloc(room);
    for (size_t i = 0; i < room; ++i)
        data[0][i] = (char)next_random(&state);
    blocks = blocks_of(BYTES);
    libcoll_choice("bcast", BYTES, MPI_COMM_WORLD);
    int all = 0;
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int poor = 0; poor < size; poor += size - 1)
            for (is_lasting = 0; is_lasting < 2; ++is_lasting)
                for (int number = 0; try(&collectives[collective], poor, number, data); ++number)
                    ++all;
    if (rank == 0)
        printf("%d allocations failed\n", all);
    for (int i = 0; i < 3; ++i)
        free(data[i]);
    return finish();
}
