/*
 * No context is left for a private communicator: the program runs natively and is not ended,
 * although errors are fatal on its communicator.
 *
 *   exhausted [COLLECTIVE]   one that the table of rules does not leave to native; bcast
 */
#include "program.h"

#include "libcoll.h"

enum { MOST = 70000, BYTES = 100 };

static MPI_Comm comms[MOST];

/* As many communicators as there can be. */
static int take_all(void) {
    int count = 0;
    while (count < MOST && PMPI_Comm_dup(MPI_COMM_WORLD, &comms[count]) == MPI_SUCCESS)
        ++count;
    return count;
}

static void use(MPI_Comm comm) {
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        EXPECT(!differs(collective, BYTES, 1, (unsigned)collective, comm));
}

int main(int argc, char **argv) {
    MPI_Errhandler handler;
    const char *collective = argc > 1 ? argv[1] : "bcast";
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int count = take_all();
    EXPECT(count > 1 && count < MOST);
    MPI_Comm last = comms[count - 1], other = comms[0];
    MPI_Comm_set_errhandler(last, MPI_ERRORS_ARE_FATAL);
    EXPECT(strcmp(libcoll_choice(collective, BYTES, last), "native") != 0);
    use(last);
    EXPECT(strcmp(libcoll_choice(collective, BYTES, last), "native") == 0);
    MPI_Comm_get_errhandler(last, &handler);
    EXPECT(handler == MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    for (int i = 1; i < count; ++i)
        PMPI_Comm_free(&comms[i]);
    /* There is room again for those that come later. */
    use(other);
    EXPECT(strcmp(libcoll_choice(collective, BYTES, other), "native") != 0);
    PMPI_Comm_free(&other);
    return finish();
}
