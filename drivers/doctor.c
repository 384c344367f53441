/*
 * For `stagegen doctor`: whether the ranks of a job find each other, and how far their clocks
 * differ from rank 0's. Rank 0 answers in JSON.
 *
 *   doctor        the whole: {"mpi": VERSION, "clocks": [[OFFSET, ERROR], ...]}, in seconds
 *   doctor load   nothing: to start at all, the host must have its libraries
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json_text.h"

enum { TRIES = 10 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/*
 * The clock of a rank was read between two readings of one's own (F. Cristian, Probabilistic clock
 * synchronization, 1989): its offset is known to half of the shortest round trip.
 */
static void ask(int rank, double *offset, double *error) {
    *offset = 0;
    *error = 1e9;
    for (int i = 0; i < TRIES; ++i) {
        double there;
        const double before = now();
        MPI_Send(NULL, 0, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD);
        MPI_Recv(&there, 1, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double after = now();
        if ((after - before) / 2 < *error) {
            *error = (after - before) / 2;
            *offset = there - (before + after) / 2;
        }
    }
}

static void answer(void) {
    for (int i = 0; i < TRIES; ++i) {
        MPI_Recv(NULL, 0, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double here = now();
        MPI_Send(&here, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
}

static void report(int size) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    make_fit_for_json(version);
    printf("{\"mpi\": \"%s\", \"clocks\": [[0, 0]", version);
    for (int rank = 1; rank < size; ++rank) {
        double offset, error;
        ask(rank, &offset, &error);
        printf(", [%.6f, %.6f]", offset, error);
    }
    printf("]}\n");
}

int main(int argc, char **argv) {
    int rank, size;
    if (argc > 1 && strcmp(argv[1], "load") == 0)
        return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        report(size);
    else
        answer();
    MPI_Finalize();
    return 0;
}
