/*
 * LIBCOLL_TRACE=json:FILE: which calls a program makes, and what they take. `stagegen tune --for`
 * reads the file. Nothing is communicated: rank 0 of each communicator counts its calls.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "libcoll.h"

/* What calls have in common that count as one. */
struct subject {
    const struct coll_routine *routine;
    MPI_Aint bytes;
    enum coll_kind kind;
    int ranks, hosts, group;
};

struct coll_histogram_entry {
    struct subject subject;
    unsigned long calls;
    double seconds; /* on this rank */
};

/* Once SIZES_MOST entries are taken, sizes are rounded down to powers of two. */
enum { ENTRIES = 1 << 12, SIZES_MOST = ENTRIES / 2 };

static struct coll_histogram_entry entries[ENTRIES]; /* open addressing; free without a routine */
static int taken;
static unsigned long left_out; /* calls for which there was no room */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t hash_of(const struct subject *subject) {
    const size_t facts[] = {(size_t)(subject->routine - coll_routines),
                            (size_t)subject->bytes,
                            (size_t)subject->kind,
                            (size_t)subject->ranks,
                            (size_t)subject->hosts,
                            (size_t)subject->group};
    size_t hash = 0;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; ++i)
        hash = (hash ^ facts[i]) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static int same(const struct subject *a, const struct subject *b) {
    return a->routine == b->routine && a->bytes == b->bytes && a->kind == b->kind &&
           a->ranks == b->ranks && a->hosts == b->hosts && a->group == b->group;
}

/* The entry of a subject, or the free one that is for it; NULL if all are taken. */
static struct coll_histogram_entry *place_of(const struct subject *subject) {
    const size_t hash = hash_of(subject);
    for (size_t i = 0; i < ENTRIES; ++i) {
        struct coll_histogram_entry *entry = &entries[(hash + i) % ENTRIES];
        if (entry->subject.routine == NULL || same(&entry->subject, subject))
            return entry;
    }
    return NULL;
}

static MPI_Aint power_of_two(MPI_Aint bytes) {
    MPI_Aint power = 1;
    while (bytes >> 1 >= power)
        power <<= 1;
    return bytes == 0 ? 0 : power;
}

static struct coll_histogram_entry *take(struct subject *subject) {
    struct coll_histogram_entry *entry = place_of(subject);
    if (taken >= SIZES_MOST && (entry == NULL || entry->subject.routine == NULL)) {
        subject->bytes = power_of_two(subject->bytes);
        entry = place_of(subject);
    }
    if (entry != NULL && entry->subject.routine == NULL) {
        entry->subject = *subject;
        ++taken;
    }
    return entry;
}

struct coll_histogram_entry *coll_histogram_find(const struct coll_call *call,
                                                 const struct coll_comm *cc,
                                                 const struct coll_routine *routine) {
    if (coll_settings()->histogram == NULL || cc == NULL || cc->rank != 0)
        return NULL;
    struct subject subject = {.routine = routine,
                              .bytes = call->bytes,
                              .kind = cc->kind,
                              .ranks = cc->size,
                              .hosts = cc->hosts,
                              .group = cc->kind == COLL_KIND_CLUSTER ? cc->group : -1};
    pthread_mutex_lock(&mutex);
    struct coll_histogram_entry *entry = take(&subject);
    left_out += entry == NULL;
    pthread_mutex_unlock(&mutex);
    return entry;
}

void coll_histogram_add(struct coll_histogram_entry *entry, double seconds) {
    if (entry == NULL)
        return;
    pthread_mutex_lock(&mutex);
    entry->calls += 1;
    entry->seconds += seconds;
    pthread_mutex_unlock(&mutex);
}

/* As tables of the decision table are named. */
static void print_communicator(FILE *file, const struct subject *subject) {
    static const char *const kinds[] = {"native", "other", "hosts", "cluster"};
    if (subject->group > 0)
        fprintf(file, "\"group %s\"", coll_cluster_group_names[subject->group]);
    else if (subject->hosts == 1 && subject->kind != COLL_KIND_CLUSTER &&
             subject->kind != COLL_KIND_NATIVE)
        fprintf(file, "\"one-host\"");
    else
        fprintf(file, "\"%s\"", kinds[subject->kind]);
}

static void print_entry(FILE *file, const struct coll_histogram_entry *entry) {
    const struct subject *subject = &entry->subject;
    fprintf(file, "  {\"collective\": \"%s\", \"communicator\": ",
            coll_collective_names[subject->routine->collective]);
    print_communicator(file, subject);
    fprintf(file, ", \"ranks\": %d, \"hosts\": ", subject->ranks);
    if (subject->hosts > 0)
        fprintf(file, "%d", subject->hosts);
    else
        fprintf(file, "null");
    fprintf(file, ", \"bytes\": %lld, \"routine\": \"%s\", \"calls\": %lu, \"seconds\": %.9f}",
            (long long)subject->bytes, subject->routine->name, entry->calls, entry->seconds);
}

/* By collective, ranks, size; then as the routines are in their table. */
static int compare(const void *one, const void *other) {
    const struct subject *a = one, *b = other;
    const long long differences[] = {
        (long long)a->routine->collective - (long long)b->routine->collective, a->ranks - b->ranks,
        (long long)a->bytes - (long long)b->bytes, a->routine - b->routine};
    for (size_t i = 0; i < sizeof differences / sizeof differences[0]; ++i)
        if (differences[i] != 0)
            return differences[i] < 0 ? -1 : 1;
    return 0;
}

/* Move the entries that count to the front, in order; returns how many they are. */
static size_t sort_entries(void) {
    size_t count = 0;
    for (size_t i = 0; i < ENTRIES; ++i)
        if (entries[i].calls > 0)
            entries[count++] = entries[i];
    qsort(entries, count, sizeof entries[0], compare);
    return count;
}

static void print_all(FILE *file) {
    const size_t count = sort_entries();
    fprintf(
        file,
        "{\"version\": 1, \"library\": \"%s\", \"cluster\": \"%s\", \"topology_hash\": \"%s\",\n"
        " \"left_out\": %lu, \"calls\": [\n",
        LIBCOLL_VERSION, coll_cluster_name, coll_cluster_hash, left_out);
    for (size_t i = 0; i < count; ++i) {
        print_entry(file, &entries[i]);
        fputs(i + 1 < count ? ",\n" : "\n", file);
    }
    fputs("]}\n", file);
}

/* The file's name, with the rank in place of %r. Returns whether this rank writes a file. */
static int name_of(char *name, size_t room, const char *pattern, int rank) {
    const char *mark = strstr(pattern, "%r");
    if (mark == NULL)
        snprintf(name, room, "%s", pattern);
    else
        snprintf(name, room, "%.*s%d%s", (int)(mark - pattern), pattern, rank, mark + 2);
    return rank == 0 || mark != NULL;
}

#ifdef COLL_ADAPTIVE
int coll_file_of(char *name, size_t room, const char *pattern, int rank) {
    return name_of(name, room, pattern, rank);
}

#endif
void coll_histogram_write(void) {
    char name[4096];
    int rank;
    const char *pattern = coll_settings()->histogram;
    if (pattern == NULL)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!name_of(name, sizeof name, pattern, rank))
        return;
    FILE *file = fopen(name, "w");
    int written = file != NULL;
    if (written) {
        const locale_t before = coll_numbers_begin();
        pthread_mutex_lock(&mutex);
        print_all(file);
        pthread_mutex_unlock(&mutex);
        coll_numbers_end(before);
        written = !ferror(file);
        written = fclose(file) == 0 && written;
    }
    if (!written) {
        fprintf(stderr, "libcoll: LIBCOLL_TRACE: cannot write %s: ", name);
        perror(NULL);
    }
}
