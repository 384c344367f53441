/*
 * Communicators made, used for all collectives, and freed thousands of times: no communicator
 * context and no memory of ours stays behind. More live ones than there are contexts for us too:
 * native.
 *
 *   communicators recreate|live COUNT
 */
#include "program.h"

#include <malloc.h>
#include <unistd.h>

/* What is allocated and not freed: all of it is small, so that it is in no mapping of its own. */
static long allocated(void) {
    return (long)mallinfo2().uordblks;
}

static long resident_pages(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages;
}

/* A duplicate, the ranks in reverse, every other rank, or only the first two. */
static MPI_Comm make(int number, int rank) {
    MPI_Comm comm;
    if (number % 4 == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else if (number % 4 == 1)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    else if (number % 4 == 2)
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &comm);
    return comm;
}

static void use(MPI_Comm comm, int number) {
    int size;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_size(comm, &size);
    EXPECT(!differs(number / 4 % COLLECTIVES, 1 + 64 * (number % 5), number % size,
                    (unsigned)number, comm));
}

/*
 * From the quarter on, when all that stays for good is there but for buffers that the MPI library
 * may still add to its own. What each communicator left behind would be 32 bytes at the least.
 */
enum { KEPT_MOST = 20 };

static void recreate(int count, int rank) {
    long before = 0, allocated_before = 0;
    for (int number = 0; number < count; ++number) {
        MPI_Comm comm = make(number, rank);
        use(comm, number);
        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
        if (number == count / 4) {
            before = resident_pages();
            allocated_before = allocated();
        }
    }
    const long grown = (resident_pages() - before) * sysconf(_SC_PAGESIZE);
    const long kept = allocated() - allocated_before;
    if (rank == 0)
        printf("grown by %ld KiB, %ld bytes allocated\n", grown / 1024, kept);
    EXPECT(grown < (2L << 20));
    EXPECT(kept < (long)KEPT_MOST * count);
}

static void keep_alive(int count) {
    MPI_Comm *comms = malloc((size_t)count * sizeof *comms);
    for (int number = 0; number < count; ++number) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[number]);
        use(comms[number], number);
    }
    for (int number = 0; number < count; ++number) {
        use(comms[number], number + 1);
        MPI_Comm_free(&comms[number]);
    }
    free(comms);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int count = argc == 3 ? atoi(argv[2]) : 0;
    EXPECT(count > 0);
    if (argc == 3 && strcmp(argv[1], "recreate") == 0)
        recreate(count, rank);
    else
        keep_alive(count);
    return finish();
}
