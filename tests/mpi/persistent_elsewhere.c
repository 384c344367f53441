/*
 * Persistent collectives where programs seldom have them: on intercommunicators, at absolute
 * addresses, and with their whole lives in several threads at once.
 *
 *   persistent_elsewhere intercommunicators|addresses|threads
 */

#include "program.h"

#include <pthread.h>

enum { COUNT = 500, ROUNDS = 12, THREADS = 3 };

static void start_and_wait(MPI_Request *request) {
    EXPECT(MPI_Start(request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

/* Between even and odd ranks. */
static void use_intercommunicators(void) {
    MPI_Comm half, both;
    MPI_Request requests[4];
    int rank, local, remote, own, sum = -1, root, told;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    MPI_Comm_rank(both, &local);
    MPI_Comm_remote_size(both, &remote);
    int *send = calloc((size_t)remote, sizeof *send), *recv = calloc((size_t)remote, sizeof *recv);
    root = rank % 2 ? 0 : local == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Alltoall_init(send, 1, MPI_INT, recv, 1, MPI_INT, both, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, both, MPI_INFO_NULL, &requests[1]);
    MPI_Bcast_init(&told, 1, MPI_INT, root, both, MPI_INFO_NULL, &requests[2]);
    MPI_Barrier_init(both, MPI_INFO_NULL, &requests[3]);
    for (int round = 0; round < ROUNDS; ++round) {
        int expected = 0;
        own = rank + round;
        told = rank == 0 ? round : -1;
        for (int i = 0; i < remote; ++i) {
            send[i] = 100 * rank + i + round;
            recv[i] = -1;
            expected += 2 * i + 1 - rank % 2 + round;
        }
        for (int i = 0; i < 4; ++i)
            start_and_wait(&requests[i]);
        for (int i = 0; i < remote; ++i)
            EXPECT(recv[i] == 100 * (2 * i + 1 - rank % 2) + local + round);
        EXPECT(sum == expected);
        EXPECT(told == (rank == 0 || rank % 2 ? round : -1));
    }
    for (int i = 0; i < 4; ++i)
        MPI_Request_free(&requests[i]);
    free(send);
    free(recv);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* So many numbers at an address, counted from MPI_BOTTOM; its extent is theirs. */
static MPI_Datatype numbers_at(const int *place) {
    const int length = COUNT;
    MPI_Aint address;
    MPI_Datatype numbers, type;
    MPI_Get_address(place, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &numbers);
    MPI_Type_create_resized(numbers, 0, COUNT * sizeof(int), &type);
    MPI_Type_free(&numbers);
    MPI_Type_commit(&type);
    return type;
}

/* Data at MPI_BOTTOM, where its type says. */
static void use_addresses(void) {
    MPI_Request requests[3];
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const size_t all = (size_t)size * COUNT;
    int *send = calloc(all, sizeof *send), *recv = calloc(all, sizeof *recv);
    int *told = calloc(COUNT, sizeof *told), *gathered = calloc(all, sizeof *gathered);
    int *counts = calloc((size_t)size, sizeof *counts),
        *places = calloc((size_t)size, sizeof *places);
    MPI_Datatype types[] = {numbers_at(send), numbers_at(recv), numbers_at(told),
                            numbers_at(gathered)};
    for (int i = 0; i < size; ++i) {
        counts[i] = 1;
        places[i] = i;
    }
    MPI_Alltoallv_init(MPI_BOTTOM, counts, places, types[0], MPI_BOTTOM, counts, places, types[1],
                       MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(MPI_BOTTOM, 1, types[2], size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Gather_init(MPI_BOTTOM, 1, types[0], MPI_BOTTOM, 1, types[3], 0, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &requests[2]);
    for (int i = 0; i < 4; ++i) /* operations keep what they need */
        MPI_Type_free(&types[i]);
    for (int round = 0; round < ROUNDS; ++round) {
        for (int i = 0; i < (int)all; ++i) {
            send[i] = 1000 * rank + i + round;
            recv[i] = gathered[i] = -1;
        }
        for (int i = 0; i < COUNT; ++i)
            told[i] = rank == size - 1 ? i + round : -1;
        EXPECT(MPI_Startall(3, requests) == MPI_SUCCESS);
        EXPECT(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < (int)all; ++i) {
            const int from = i / COUNT, k = i % COUNT;
            EXPECT(recv[i] == 1000 * from + rank * COUNT + k + round);
            EXPECT(gathered[i] == (rank == 0 ? 1000 * from + k + round : -1));
        }
        for (int i = 0; i < COUNT; ++i)
            EXPECT(told[i] == i + round);
    }
    for (int i = 0; i < 3; ++i)
        MPI_Request_free(&requests[i]);
    int *owned[] = {send, recv, told, gathered, counts, places};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; ++i)
        free(owned[i]);
}

/* Inits, starts, waits and frees on a communicator that only this thread uses. */
static void *live(void *argument) {
    const MPI_Comm comm = *(const MPI_Comm *)argument;
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *send = calloc((size_t)size * COUNT, sizeof *send);
    int *recv = calloc((size_t)size * COUNT, sizeof *recv);
    for (int round = 0; round < ROUNDS; ++round) {
        MPI_Request requests[3];
        int own = rank + round, sum = -1, told = rank == 0 ? round : -1;
        for (int i = 0; i < size * COUNT; ++i)
            send[i] = 1000 * rank + i + round;
        MPI_Alltoall_init(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, comm, MPI_INFO_NULL,
                          &requests[0]);
        MPI_Allreduce_init(&own, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[1]);
        MPI_Bcast_init(&told, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[2]);
        MPI_Startall(3, requests);
        if (round % 2)
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        else
            for (int i = 0; i < 3; ++i)
                for (int done = 0; !done;)
                    MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
        for (int i = 0; i < size * COUNT; ++i)
            wrong += recv[i] != 1000 * (i / COUNT) + rank * COUNT + i % COUNT + round;
        wrong += sum != size * (size - 1) / 2 + size * round;
        wrong += told != round;
        for (int i = 0; i < 3; ++i)
            MPI_Request_free(&requests[i]);
    }
    free(send);
    free(recv);
    return wrong == 0 ? argument : NULL;
}

static void use_threads(void) {
    pthread_t threads[THREADS];
    MPI_Comm comms[THREADS];
    for (int i = 0; i < THREADS; ++i)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; ++i)
        EXPECT(pthread_create(&threads[i], NULL, live, &comms[i]) == 0);
    for (int i = 0; i < THREADS; ++i) {
        void *right = NULL;
        EXPECT(pthread_join(threads[i], &right) == 0);
        EXPECT(right != NULL);
    }
    for (int i = 0; i < THREADS; ++i)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv) {
    int provided, ran = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    const struct {
        const char *name;
        void (*run)(void);
    } uses[] = {{"intercommunicators", use_intercommunicators},
                {"addresses", use_addresses},
                {"threads", use_threads}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; ++i)
        if (argc == 2 && strcmp(argv[1], uses[i].name) == 0) {
            uses[i].run();
            ++ran;
        }
    EXPECT(ran == 1 && provided == MPI_THREAD_MULTIPLE);
    return finish();
}
