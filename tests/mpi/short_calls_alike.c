/*
 * The same short calls again and again on a duplicate, which ranks find differently. After some of
 * them a routine serves, on all ranks from the same call on; else the program hangs, or the data is
 * wrong.
 *
 *   types     rank 0 gives another type than the others, of as many bytes
 *   long      likewise, with a long call in the midst
 *   own       rank 0 makes and frees communicators of its own in between
 *   threads   two threads of rank 0 take turns, and one of all others
 *   trace     no difference here: the test sets a variable on rank 0
 */
#include <pthread.h>

#include "coll.h"
#include "program.h"

enum { CALLS = 60, NUMBERS = 16, LONG = 1 << 20 };

static MPI_Comm comm;
static MPI_Datatype own_type;
static int rank;

static void *broadcast(void *number) {
    const int value = *(int *)number;
    int data[NUMBERS];
    for (int i = 0; i < NUMBERS; ++i)
        data[i] = rank == 0 ? value : -1;
    if (rank == 0)
        EXPECT(MPI_Bcast(data, 1, own_type, 0, comm) == MPI_SUCCESS);
    else
        EXPECT(MPI_Bcast(data, NUMBERS, MPI_INT, 0, comm) == MPI_SUCCESS);
    EXPECT(data[0] == value && data[NUMBERS - 1] == value);
    return NULL;
}

static void sum_up(int number) {
    int sum = 0, size;
    MPI_Comm_size(comm, &size);
    EXPECT(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(sum == number * size);
}

static void in_a_thread(int number) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, broadcast, &number) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void free_one_of_its_own(void) {
    MPI_Comm other;
    EXPECT(MPI_Comm_dup(MPI_COMM_SELF, &other) == MPI_SUCCESS);
    EXPECT(MPI_Barrier(other) == MPI_SUCCESS);
    EXPECT(MPI_Comm_free(&other) == MPI_SUCCESS);
}

static void call_once(const char *way, int number) {
    static char many[LONG];
    if (strcmp(way, "long") == 0 && number == CALLS / 2)
        EXPECT(MPI_Bcast(many, LONG, MPI_BYTE, 0, comm) == MPI_SUCCESS);
    if (strcmp(way, "own") == 0 && rank == 0)
        free_one_of_its_own();
    if (strcmp(way, "threads") == 0 && rank == 0 && number % 2 == 0)
        in_a_thread(number);
    else
        broadcast(&number);
    sum_up(number);
}

int main(int argc, char **argv) {
    int provided;
    struct coll_comm *cc;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(MPI_Type_contiguous(NUMBERS, MPI_INT, &own_type) == MPI_SUCCESS);
    EXPECT(MPI_Type_commit(&own_type) == MPI_SUCCESS);
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    for (int number = 0; number < CALLS; ++number)
        call_once(argc > 1 ? argv[1] : "", number);
    EXPECT(coll_comm_get(comm, &cc) == MPI_SUCCESS);
    EXPECT(cc->comm != MPI_COMM_NULL); /* routines have served */
    EXPECT(MPI_Comm_free(&comm) == MPI_SUCCESS);
    EXPECT(MPI_Type_free(&own_type) == MPI_SUCCESS);
    return finish();
}
