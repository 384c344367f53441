/*
 * Barriers and allreduces on many communicators, of ranks that come late, without a word between:
 * what LIBCOLL_MULTICAST tells must neither hurry, nor mix, nor keep anybody.
 *
 *   multicast [COMMUNICATORS ROUNDS [SLOW]]
 *
 * If a rank is named as slow, it asks all others in turn, after calls, for a message that they send
 * when they have left: it calls nothing of libcoll meanwhile, and nobody may need it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sizes of allreduces: up to the most of a datagram (1,200 bytes), and more. */
static const int counts[] = {1, 3, 128, 150, 151, 1000};

enum { COUNTS = sizeof counts / sizeof counts[0], MOST = 1000, COMMUNICATORS_MOST = 64 };
enum { LONGEST_US = 3000, TURN = 77 };

static int world_rank, world_size, wrong;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time); /* the same for all ranks of a machine */
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void sleep_for(long microseconds) {
    const struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static void come_late(int round) {
    const unsigned draw = (unsigned)(round * 1000 + world_rank) * 2654435761U;
    if (draw % 3 == 0)
        sleep_for((long)(draw / 3 % LONGEST_US));
}

static void must(int right, const char *what, int round) {
    if (!right && wrong++ == 0)
        printf("rank %d, round %d: %s\n", world_rank, round, what);
}

/* Nobody leaves before all have come. */
static void check_barrier(MPI_Comm comm, int round) {
    const double came = now();
    double last;
    MPI_Barrier(comm);
    const double left = now();
    PMPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
    must(left >= last, "left a barrier too early", round);
}

static void check_allreduce(MPI_Comm comm, int round) {
    int rank, size;
    double own[MOST], sum[MOST];
    const int count = counts[round % COUNTS];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < count; ++i)
        own[i] = round + rank + i;
    MPI_Allreduce(own, sum, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; ++i)
        must(sum[i] == (double)size * (round + i) + size * (size - 1) / 2.0, "wrong sum", round);
}

/* The elements of a vector have gaps, which stay as they are. */
static void check_gaps(MPI_Comm comm, int round) {
    enum { ELEMENTS = 10 };
    struct {
        double value;
        int index;
        int gap;
    } own[ELEMENTS], best[ELEMENTS];
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < ELEMENTS; ++i) {
        own[i].value = (rank + round) % size;
        own[i].index = rank;
        best[i].gap = -i;
    }
    MPI_Allreduce(own, best, ELEMENTS, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    for (int i = 0; i < ELEMENTS; ++i)
        must(best[i].value == size - 1 && best[i].gap == -i, "wrong maximum", round);
}

/* The slow rank waits for others one by one, and calls nothing of libcoll. */
static void take_turns(int slow, int round) {
    if (world_rank != slow) {
        PMPI_Send(&round, 1, MPI_INT, slow, TURN, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < world_size - 1; ++i) {
        const int from = (slow + 1 + (round + i) % (world_size - 1)) % world_size;
        int theirs;
        PMPI_Recv(&theirs, 1, MPI_INT, from, TURN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        must(theirs == round, "wrong turn", round);
    }
}

static void make_communicators(MPI_Comm *made, int count) {
    made[0] = MPI_COMM_WORLD;
    for (int i = 1; i < count; ++i)
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? 0 : world_rank % 2,
                       i < 3 ? -world_rank : world_rank * i % 5, &made[i]);
}

int main(int argc, char **argv) {
    MPI_Comm comms[COMMUNICATORS_MOST];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    const int count = argc > 2 ? atoi(argv[1]) : 6, rounds = argc > 2 ? atoi(argv[2]) : 20;
    const int slow = argc > 3 ? atoi(argv[3]) : -1;
    make_communicators(comms, count);
    for (int round = 0; round < rounds * count; ++round) {
        const MPI_Comm comm = comms[round % count];
        come_late(round);
        check_allreduce(comm, round / count);
        if (slow >= 0 && comm == MPI_COMM_WORLD)
            take_turns(slow, round);
        if (round % 4 == 0)
            check_gaps(comm, round);
        if (round % 3 == 0)
            check_barrier(comm, round);
    }
    for (int i = 1; i < count - 1; ++i) /* one is left to MPI_Finalize */
        MPI_Comm_free(&comms[i]);
    PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("%s\n", wrong == 0 ? "right" : "wrong");
    MPI_Finalize();
    return wrong != 0;
}
