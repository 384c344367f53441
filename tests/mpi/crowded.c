/*
 * Calls in shared memory of ranks whose processors are those of the first argument: `apart`, each
 * has one of its own; `together`, all have the same one; `unknown`, the system does not tell. Rank
 * 0 waits for the others, and prints how often it gave its processor away while it looked.
 */
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "program.h"

enum { CALLS = 5, LATE_US = 30000 };

static int first, yields;

static const char *way;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set);

int __wrap_sched_yield(void) {
    ++yields;
    return __real_sched_yield();
}

/* Ranks that are apart have processors with great numbers, too. */
int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set) {
    int rank;
    EXPECT(process == 0);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(way, "unknown") == 0) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(strcmp(way, "apart") == 0 ? (size_t)rank * 1500 : 1, bytes, set);
    return 0;
}

int main(int argc, char **argv) {
    int rank, size, in = 1, out = 0;
    MPI_Init(&argc, &argv);
    way = argv[1];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    first = yields;
    for (int i = 0; i < CALLS; ++i) {
        if (rank != 0)
            usleep(LATE_US);
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(out == size);
    }
    if (rank == 0)
        printf("%d\n", yields - first);
    return finish();
}
