/*
 * What a rank is to keep of a communicator does not fit into its memory: linked with --wrap=calloc,
 * so that on one rank after the other nothing can be kept while a routine first runs.
 *
 *   lacking COLLECTIVE...   results are compared with the MPI library's own
 */
#include "program.h"

extern const char *libcoll_choice(const char *collective, MPI_Aint bytes, MPI_Comm comm);

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static int is_poor, denied;

void *__wrap_calloc(size_t count, size_t bytes) {
    if (!is_poor)
        return __real_calloc(count, bytes);
    ++denied;
    return NULL;
}

static int number_of(const char *name) {
    for (int i = 0; i < COLLECTIVES; ++i)
        if (strcmp(collectives[i].name, name) == 0)
            return i;
    fprintf(stderr, "no collective %s\n", name);
    exit(EXIT_FAILURE);
}

/* Calls on a new communicator; in the first one, nothing can be kept on the rank `poor`. */
static void calls_of(const char *name, int rank, int size, int poor) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    libcoll_choice(name, 64, comm); /* what is known of the communicator is there */
    const int before = denied;
    for (int i = 0; i < 4; ++i) {
        is_poor = i == 0 && rank == poor;
        EXPECT(!differs(number_of(name), 64, i % size, (unsigned)i, comm));
        is_poor = 0;
    }
    EXPECT((denied > before) == (rank == poor));
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; ++i)
        for (int poor = 0; poor <= size; ++poor) /* at last, none is */
            calls_of(argv[i], rank, size, poor);
    return finish();
}
