/*
 * What cannot be freed: the program is told as often as by the MPI library, and goes on.
 *
 *   freeing world   rank 0 frees MPI_COMM_WORLD: what is known of its ranks stays
 *   freeing again   all free a communicator once more; an error handler makes a first call
 */
#include "program.h"

static int handled;

static int class_of(int error) {
    int class = -1;
    MPI_Error_class(error, &class);
    return class;
}

static void call_all(MPI_Comm comm) {
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        EXPECT(!differs(collective, 400, 0, 1, comm));
}

/* Errors of no communicator go to one of these, as the MPI library chooses. */
static void set_handler(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

static void free_world(void) {
    int rank;
    MPI_Comm half, world = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    set_handler(MPI_ERRORS_RETURN);
    if (rank == 0)
        EXPECT(class_of(MPI_Comm_free(&world)) == MPI_ERR_COMM);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    call_all(half);
    MPI_Comm_free(&half);
}

static MPI_Comm fresh = MPI_COMM_NULL; /* on which the library knows nothing yet */

static void call_first(MPI_Comm *where, int *code, ...) {
    (void)where;
    (void)code;
    if (handled++ == 0 && fresh != MPI_COMM_NULL)
        call_all(fresh);
}

/* Whether the program was told once. */
static int is_told(MPI_Comm freed, int (*how)(MPI_Comm *comm)) {
    handled = 0;
    how(&freed);
    return handled == 1;
}

static void free_again(void) {
    MPI_Errhandler handler;
    MPI_Comm comm, later, freed;
    MPI_Comm_create_errhandler(call_first, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &later);
    call_all(comm);
    freed = comm;
    MPI_Comm_free(&comm);
    set_handler(MPI_ERRORS_RETURN);
    comm = freed;
    EXPECT(class_of(MPI_Comm_free(&comm)) == MPI_ERR_COMM);
    set_handler(handler);
    EXPECT(is_told(freed, MPI_Comm_free));
    EXPECT(is_told(freed, MPI_Comm_disconnect));
    fresh = later; /* whose private duplicate may get that handle */
    EXPECT(is_told(freed, MPI_Comm_free));
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&later);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    EXPECT(argc == 2);
    if (argc == 2)
        strcmp(argv[1], "world") == 0 ? free_world() : free_again();
    return finish();
}
