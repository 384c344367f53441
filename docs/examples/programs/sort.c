/*
 * Integers, sorted as IS of the NAS benchmarks does it: an allreduce counts the keys in buckets,
 * every rank gets a range of buckets with about as many keys, an alltoall tells how many keys go
 * where, and an alltoallv moves them.
 *
 *   sort [EACH [STEPS]]          keys of each rank, and repetitions; unless told 20000, 10
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { BUCKETS = 1024, KEYS = 1 << 20 };

static int rank, size;

static void *room(size_t count, size_t bytes) {
    void *memory = calloc(count + 1, bytes);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static int bucket_of(int key) {
    return key / (KEYS / BUCKETS);
}

static int ascending(const void *a, const void *b) {
    const int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

/* The rank that each bucket goes to. */
static void share(const int *keys, int count, int *owner) {
    int counts[BUCKETS] = {0}, all[BUCKETS];
    for (int i = 0; i < count; ++i)
        ++counts[bucket_of(keys[i])];
    MPI_Allreduce(counts, all, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    long long total = 0, before = 0;
    for (int bucket = 0; bucket < BUCKETS; ++bucket)
        total += all[bucket];
    for (int bucket = 0; bucket < BUCKETS; ++bucket) {
        owner[bucket] = total == 0 ? 0 : (int)(before * size / total);
        before += all[bucket];
    }
}

/* Sort the keys of all ranks; returns how many are this rank's. */
static int sort(int *keys, int count, int **sorted) {
    int owner[BUCKETS];
    int *to = room((size_t)size, sizeof(int)), *from = room((size_t)size, sizeof(int));
    int *to_place = room((size_t)size, sizeof(int)), *from_place = room((size_t)size, sizeof(int));
    qsort(keys, (size_t)count, sizeof *keys, ascending);
    share(keys, count, owner);
    for (int i = 0; i < count; ++i)
        ++to[owner[bucket_of(keys[i])]];
    MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
    int found = 0, sent = 0;
    for (int other = 0; other < size; ++other) {
        to_place[other] = sent;
        from_place[other] = found;
        sent += to[other];
        found += from[other];
    }
    *sorted = room((size_t)found, sizeof(int));
    MPI_Alltoallv(keys, to, to_place, MPI_INT, *sorted, from, from_place, MPI_INT, MPI_COMM_WORLD);
    qsort(*sorted, (size_t)found, sizeof(int), ascending);
    free(to);
    free(from);
    free(to_place);
    free(from_place);
    return found;
}

/* Whether no key of an earlier rank is greater, and no key was lost. */
static int is_right(const int *sorted, int found, long long sum, long long count) {
    int greatest = found > 0 ? sorted[found - 1] : -1, before = -1;
    long long own[3] = {found, 0, 0}, all[3];
    for (int i = 0; i < found; ++i)
        own[1] += sorted[i];
    MPI_Exscan(&greatest, &before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    own[2] = rank > 0 && found > 0 && sorted[0] < before;
    MPI_Allreduce(own, all, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all[0] == count && all[1] == sum && all[2] == 0;
}

int main(int argc, char **argv) {
    const int each = argc > 1 ? atoi(argv[1]) : 20000, steps = argc > 2 ? atoi(argv[2]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *keys = room((size_t)each, sizeof *keys), right = 1;
    srand((unsigned)rank + 1);
    const double begun = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        long long own[2] = {0, each}, all[2];
        int *sorted;
        for (int i = 0; i < each; ++i) {
            keys[i] = (rand() % KEYS + rand() % KEYS) / 2; /* not all alike often, as in IS */
            own[0] += keys[i];
        }
        MPI_Allreduce(own, all, 2, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
        const int found = sort(keys, each, &sorted);
        right &= is_right(sorted, found, all[0], all[1]);
        free(sorted);
    }
    const double seconds = MPI_Wtime() - begun;
    if (rank == 0)
        printf("%s: %d keys, %d times, %.6f s\n", right ? "right" : "wrong", each * size, steps,
               seconds);
    free(keys);
    MPI_Finalize();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
