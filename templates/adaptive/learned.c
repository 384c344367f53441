/*
 * What adaptive calls learned: LIBCOLL_LEARN=FILE, written at MPI_Finalize, and the line that the
 * policy `guard` says then. Rank 0 of each communicator has its situations; nothing is communicated
 * for it. `stagegen adapt` and `stagegen learn` read the file (docs/schemas/learned.schema.json).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"
#include "libcoll.h"

/* Not in all programs that are linked statically. */
#pragma weak dladdr

/* What a process keeps at most: situations; stages of each, the first and the latest; times. */
enum { RECORDS_MOST = 1024, FIRST = 96, LATEST = 32, TIMES_MOST = 1 << 20 };

struct stage_record {
    struct coll_stage stage;
    int times; /* of how many of its calls there are times */
    double *mean_s, *max_s, skew_s;
    char decision[96];
};

struct coll_record {
    enum coll_collective collective;
    MPI_Aint bytes;
    enum coll_kind kind;
    int ranks, hosts, group;
    unsigned communicator;
    const void *site; /* NULL: whatever the site */
    int count;
    struct coll_option *options;
    struct coll_candidate *candidates;
    unsigned long calls;
    long selected_after;         /* calls until a candidate was selected, or -1 */
    double meetings_s, search_s; /* of all meetings; of those until one was selected */
    int is_searching;            /* in the latest stage */
    unsigned long stages;
    struct stage_record first[FIRST], latest[LATEST];
    int current;  /* the candidate that serves: of the latest monitoring period, if there was one */
    int left_for; /* the first one that was monitored in place of candidate 0, or -1 */
    int is_paused; /* sites are apart: it has stopped before its policy was done */
    struct coll_record *next;
};

static struct coll_record *records, **end = &records;
static int known;
static unsigned long left_out; /* situations */
static long times_left = TIMES_MOST;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int is_guard(void) {
    return strcmp(coll_settings()->adaptive->policy->name, "guard") == 0;
}

static int is_wanted(void) {
    return coll_settings()->adaptive->learn != NULL || is_guard();
}

static void *copy_of(const void *array, size_t bytes) {
    void *copy = malloc(bytes);
    if (copy != NULL)
        memcpy(copy, array, bytes);
    return copy;
}

/* The site of a situation on this rank, where sites are apart. */
static const void *site_of(const struct coll_family *family,
                           const struct coll_situation *situation) {
    return situation == &family->whole ? NULL : family->pattern.site[situation - family->of_site];
}

static struct coll_record *make(const struct coll_call *call, const struct coll_comm *cc,
                                const struct coll_family *family,
                                const struct coll_situation *situation) {
    const size_t count = (size_t)situation->count;
    struct coll_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return NULL;
    record->options = copy_of(situation->options, count * sizeof *record->options);
    record->candidates = copy_of(situation->candidates, count * sizeof *record->candidates);
    if (record->options == NULL || record->candidates == NULL) {
        free(record->options);
        free(record->candidates);
        free(record);
        return NULL;
    }
    record->collective = call->collective;
    record->bytes = call->bytes;
    record->kind = cc->kind;
    record->ranks = cc->size;
    record->hosts = cc->hosts;
    record->group = cc->kind == COLL_KIND_CLUSTER ? cc->group : -1;
    record->communicator = cc->adaptive->number;
    record->site = site_of(family, situation);
    record->count = situation->count;
    record->selected_after = record->left_for = -1;
    record->is_searching = 1;
    return record;
}

struct coll_record *coll_learn(const struct coll_call *call, const struct coll_comm *cc,
                               const struct coll_family *family,
                               const struct coll_situation *situation) {
    struct coll_record *record = NULL;
    if (!is_wanted())
        return NULL;
    pthread_mutex_lock(&mutex);
    if (known < RECORDS_MOST)
        record = make(call, cc, family, situation);
    if (record == NULL)
        ++left_out;
    else {
        *end = record;
        end = &record->next;
        ++known;
    }
    pthread_mutex_unlock(&mutex);
    return record;
}

/* The place of a stage; of those between the first and the latest ones none is kept. */
static struct stage_record *stage_of(struct coll_record *record, unsigned long number) {
    return number < FIRST ? &record->first[number] : &record->latest[(number - FIRST) % LATEST];
}

static void keep_times(struct stage_record *kept, const struct coll_heard *heard) {
    const size_t bytes = (size_t)heard->calls * sizeof(double);
    pthread_mutex_lock(&mutex);
    times_left += 2 * kept->times;
    const int fits = 2 * heard->calls <= times_left;
    times_left -= fits ? 2 * heard->calls : 0;
    pthread_mutex_unlock(&mutex);
    free(kept->mean_s);
    free(kept->max_s);
    kept->mean_s = fits ? copy_of(heard->mean_s, bytes) : NULL;
    kept->max_s = fits ? copy_of(heard->max_s, bytes) : NULL;
    kept->times = kept->mean_s == NULL || kept->max_s == NULL ? 0 : heard->calls;
}

void coll_learn_stage(struct coll_record *record, const struct coll_stage *stage,
                      const struct coll_heard *heard, const struct coll_stage *next,
                      const char *why) {
    if (record == NULL)
        return;
    if (coll_settings()->adaptive->learn != NULL) {
        struct stage_record *kept = stage_of(record, record->stages++);
        keep_times(kept, heard);
        kept->stage = *stage;
        kept->skew_s = heard->skew_s;
        snprintf(kept->decision, sizeof kept->decision, "%s", why);
    }
    record->calls += (unsigned long)heard->calls;
    record->is_searching = record->selected_after < 0 && !stage->is_monitoring;
    if ((next->is_monitoring || record->selected_after < 0) && next->candidate >= 0 &&
        next->candidate < record->count)
        record->current = next->candidate;
    if (next->is_monitoring && record->selected_after < 0)
        record->selected_after = stage->is_monitoring ? 0 : (long)record->calls;
    if (next->is_monitoring && next->candidate != 0 && record->left_for < 0)
        record->left_for = next->candidate;
}

/* Calls that were made in the meeting after the latest stage, and are not of the next one. */
void coll_learn_passed(struct coll_record *record, int calls) {
    if (record == NULL || calls == 0)
        return;
    record->calls += (unsigned long)calls;
    if (record->stages > 0)
        stage_of(record, record->stages - 1)->stage.calls += calls;
}

void coll_learn_meeting(struct coll_record *record, double seconds) {
    if (record == NULL)
        return;
    record->meetings_s += seconds;
    record->search_s += record->is_searching ? seconds : 0;
}

void coll_learn_pause(struct coll_record *record, int is_paused) {
    if (record != NULL)
        record->is_paused = is_paused;
}

/* A text as JSON writes it; control characters become blanks. */
static void print_text(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text != '\0'; ++text) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
    fputc('"', file);
}

/* The module that an address is in, and where in it: the address is after the call. */
static void print_site(FILE *file, const void *site) {
    Dl_info info;
    char text[512] = "unknown";
    const char *at = (const char *)site - 1;
    if (site == NULL) {
        fputs("null", file);
        return;
    }
    if (dladdr != NULL && dladdr(at, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        snprintf(text, sizeof text, "%s+0x%zx", slash == NULL ? info.dli_fname : slash + 1,
                 (size_t)(at - (const char *)info.dli_fbase));
    }
    print_text(file, text);
}

static void print_communicator(FILE *file, const struct coll_record *record) {
    static const char *const kinds[] = {"native", "other", "hosts", "cluster"};
    if (record->group > 0)
        fprintf(file, "\"group %s\"", coll_cluster_group_names[record->group]);
    else if (record->hosts == 1 && record->kind != COLL_KIND_CLUSTER)
        fputs("\"one-host\"", file);
    else
        fprintf(file, "\"%s\"", kinds[record->kind]);
}

static void print_candidate(FILE *file, const struct coll_record *record, int number) {
    static const char *const names[] = {COLL_PARAMETER_NAMES};
    const struct coll_option *option = &record->options[number];
    const struct coll_candidate *candidate = &record->candidates[number];
    struct coll_parameters values = {0};
    const char *comma = "";
    if (option->parameters != NULL)
        values = *option->parameters;
    fprintf(file, "    {\"algorithm\": \"%s\", \"parameters\": {", option->routine->name);
    for (int i = 0; names[i] != NULL; ++i) {
        const int value = *coll_parameter(&values, i);
        if (value != 0) {
            fprintf(file, "%s\"%s\": %d", comma, names[i], value);
            comma = ", ";
        }
    }
    fprintf(file, "}, \"group\": %d, \"is_representative\": %s, \"known_s\": ", candidate->group,
            candidate->is_representative ? "true" : "false");
    if (candidate->known_s > 0)
        fprintf(file, "%.9g}", candidate->known_s);
    else
        fputs("null}", file);
}

static void print_times(FILE *file, const char *name, const double *times, int count) {
    fprintf(file, ", \"%s\": [", name);
    for (int i = 0; i < count; ++i)
        fprintf(file, "%s%.9g", i == 0 ? "" : ", ", times[i]);
    fputc(']', file);
}

static void print_stage(FILE *file, const struct stage_record *kept) {
    fprintf(file, "    {\"candidate\": %d, \"calls\": %d, \"is_monitoring\": %s",
            kept->stage.candidate, kept->stage.calls, kept->stage.is_monitoring ? "true" : "false");
    print_times(file, "mean_s", kept->mean_s, kept->times);
    print_times(file, "max_s", kept->max_s, kept->times);
    fprintf(file, ", \"skew_s\": %.9g, \"decision\": ", kept->skew_s);
    print_text(file, kept->decision);
    fputc('}', file);
}

static void print_stages(FILE *file, const struct coll_record *record) {
    const unsigned long first = record->stages < FIRST ? record->stages : FIRST;
    const unsigned long later = record->stages - first;
    const unsigned long latest = later < LATEST ? later : LATEST;
    for (unsigned long i = 0; i < first; ++i) {
        fputs(i == 0 ? "\n" : ",\n", file);
        print_stage(file, &record->first[i]);
    }
    for (unsigned long i = later - latest; i < later; ++i) {
        fputs(",\n", file);
        print_stage(file, &record->latest[i % LATEST]);
    }
    fprintf(file, "],\n   \"stages_left_out\": %lu}", later - latest);
}

static void print_record(FILE *file, const struct coll_record *record) {
    fprintf(file, "  {\"collective\": \"%s\", \"bytes\": %lld, \"communicator\": ",
            coll_collective_names[record->collective], (long long)record->bytes);
    print_communicator(file, record);
    fprintf(file, ", \"number\": %u, \"ranks\": %d, \"hosts\": %d, \"decided_by\": \"%s\", ",
            record->communicator, record->ranks, record->hosts,
            coll_has_root(record->collective) ? "max" : "mean");
    fprintf(file, "\"is_paused\": %s, \"site\": ", record->is_paused ? "true" : "false");
    print_site(file, record->site);
    fprintf(file,
            ",\n   \"calls\": %lu, \"meetings_s\": %.9g, \"search_s\": %.9g, \"selected_after\": ",
            record->calls, record->meetings_s, record->search_s);
    if (record->selected_after < 0)
        fputs("null", file);
    else
        fprintf(file, "%ld", record->selected_after);
    fprintf(file, ", \"current\": %d,\n   \"candidates\": [\n", record->current);
    for (int i = 0; i < record->count; ++i) {
        print_candidate(file, record, i);
        fputs(i + 1 < record->count ? ",\n" : "],\n", file);
    }
    fputs("   \"stages\": [", file);
    print_stages(file, record);
}

static void print_all(FILE *file) {
    const struct coll_options *options = coll_settings()->adaptive;
    fprintf(
        file,
        "{\"version\": 1, \"library\": \"%s\", \"cluster\": \"%s\", \"topology_hash\": \"%s\",\n"
        " \"build_hash\": \"%016llx\", \"policy\": \"%s\",\n"
        " \"settings\": {\"sites\": %d, \"sizes\": %d, \"iterations\": %d, \"delta\": %d, "
        "\"delta_bound\": %d, \"epsilon\": %.9g, \"seed\": %llu},\n"
        " \"left_out\": %lu,\n \"situations\": [",
        LIBCOLL_VERSION, coll_cluster_name, coll_cluster_hash, coll_build, options->policy->name,
        options->sites, options->sizes, options->iterations, options->delta, options->delta_bound,
        options->epsilon, (unsigned long long)options->seed, left_out);
    for (const struct coll_record *record = records; record != NULL; record = record->next) {
        fputs(record == records ? "\n" : ",\n", file);
        print_record(file, record);
    }
    fputs("]}\n", file);
}

static void write_file(const char *pattern, int rank) {
    char name[4096];
    if (!coll_file_of(name, sizeof name, pattern, rank))
        return;
    FILE *file = fopen(name, "w");
    int written = file != NULL;
    if (written) {
        const locale_t before = coll_numbers_begin();
        print_all(file);
        coll_numbers_end(before);
        written = !ferror(file);
        written = fclose(file) == 0 && written;
    }
    if (!written) {
        fprintf(stderr, "libcoll: LIBCOLL_LEARN: cannot write %s: ", name);
        perror(NULL);
    }
}

/* How many situations left what the table of rules chose, or went back, and the first of them. */
static void say_what_guard_did(void) {
    const struct coll_record *first = NULL;
    int changed = 0, back = 0;
    for (const struct coll_record *record = records; record != NULL; record = record->next)
        if (record->left_for >= 0) {
            first = first == NULL ? record : first;
            ++changed;
            back += record->current == 0;
        }
    if (first != NULL)
        fprintf(stderr,
                "libcoll: guard: %d of %d situations left the table's choice, and %d of these went "
                "back; the first: %s of %lld bytes on %d ranks, from %s to %s; LIBCOLL_LEARN=FILE "
                "has them all\n",
                changed, known, back, coll_collective_names[first->collective],
                (long long)first->bytes, first->ranks, first->options[0].routine->name,
                first->options[first->left_for].routine->name);
}

/* At MPI_Finalize. */
void coll_learn_write(void) {
    int rank;
    const struct coll_options *options = coll_settings()->adaptive;
    if (options == NULL)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_mutex_lock(&mutex);
    if (options->learn != NULL)
        write_file(options->learn, rank);
    if (rank == 0 && is_guard())
        say_what_guard_did();
    pthread_mutex_unlock(&mutex);
}
