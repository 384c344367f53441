/*
 * Every rank says where it is and what it was given, in one line; rank 0 also says what it reads.
 * With `crash`, rank 1 ends by a signal before the others can end; else the argument is the status.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value == NULL ? "-" : value;
}

int main(int argc, char **argv) {
    int rank, size, length;
    char host[256], line[1024], input[64] = "-", library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    gethostname(host, sizeof host);
    if (rank == 0 && fgets(input, sizeof input, stdin) != NULL)
        input[strcspn(input, "\n")] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    length = snprintf(line, sizeof line, "%d of %d on %s: %s, %s, %s, %.8s\n", rank, size, host,
                      variable("GIVEN"), variable("LD_PRELOAD"), input, library);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        return 1;
    if (argc > 1 && strcmp(argv[1], "crash") == 0 && rank == 1)
        raise(SIGKILL);
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
