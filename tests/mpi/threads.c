/*
 * Two threads, each with a communicator of its own, call collectives at the same time.
 *
 *   threads [CALLS]
 */
#include "program.h"

#include <pthread.h>

enum { CALLS = 60, THREADS = 2, LONGEST = 1400, LIFE = 20 };

struct work {
    MPI_Comm comm;
    unsigned seed;
    int calls, wrong;
};

/* Ours is made and freed with it, while the other thread's is, too. */
static void renew(MPI_Comm *comm) {
    MPI_Comm twin;
    MPI_Comm_dup(*comm, &twin);
    MPI_Comm_free(comm);
    *comm = twin;
}

static void *carry_out(void *argument) {
    struct work *work = argument;
    unsigned state = work->seed;
    int size;
    MPI_Comm_size(work->comm, &size);
    for (int call = 0; call < work->calls; ++call) {
        const int collective = (int)(next_random(&state) % COLLECTIVES);
        const int root = (int)(next_random(&state) % (unsigned)size);
        const int bytes = (int)(next_random(&state) % LONGEST);
        work->wrong += differs(collective, bytes, root, state, work->comm);
        if (call % LIFE == LIFE - 1)
            renew(&work->comm);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    struct work work[THREADS];
    const int calls = argc > 1 ? atoi(argv[1]) : CALLS;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        printf("no MPI_THREAD_MULTIPLE\n");
        return finish();
    }
    for (int i = 0; i < THREADS; ++i) {
        work[i] = (struct work){.seed = 11U * (unsigned)i, .calls = calls};
        MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comm);
    }
    for (int i = 0; i < THREADS; ++i)
        EXPECT(pthread_create(&threads[i], NULL, carry_out, &work[i]) == 0);
    for (int i = 0; i < THREADS; ++i) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
        EXPECT(work[i].wrong == 0);
        MPI_Comm_free(&work[i].comm);
    }
    return finish();
}
