/* THREADS, one after the other, with a call each: the process grows by less than a tenth of what
 * the events of all would take at 2 MiB each. */
#include <pthread.h>
#include <unistd.h>

#include "program.h"

static int wrong;

static void *of_thread(void *argument) {
    int in = 1, out = 0;
    (void)argument;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += out != 2;
    return NULL;
}

static void run_one(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, of_thread, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* Bytes of the process that are in memory. */
static long resident(void) {
    long pages = 0, in_memory = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file != NULL && fscanf(file, "%ld %ld", &pages, &in_memory) == 2);
    if (file != NULL)
        fclose(file);
    return in_memory * sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    EXPECT(argc == 2 && provided >= MPI_THREAD_SERIALIZED);
    const int threads = atoi(argv[1]);
    run_one();
    const long first = resident();
    for (int i = 1; i < threads; ++i)
        run_one();
    EXPECT(resident() - first < (long)threads * (2 << 20) / 10);
    EXPECT(wrong == 0);
    return finish();
}
