/*
 * The environment, but for hosts, persistent collectives and events. All but LIBCOLL_TRACE must be
 * alike on all ranks: see peers.c.
 */
#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"

/* LIBCOLL_SCRATCH where it is not set: 1 GiB. */
static const double SCRATCH_MOST = 1LL << 30;

/* LIBCOLL_SHORT_CALLS where it is not set; a duplicate takes as long as about half of these. */
enum { SHORT_CALLS = 16 };

static struct coll_settings settings;

static const char FORCE[] = "LIBCOLL_FORCE", SCRATCH[] = "LIBCOLL_SCRATCH";
static const char SHORT[] = "LIBCOLL_SHORT_CALLS";

/* Before the name of a file, in LIBCOLL_TRACE. */
static const char JSON[] = "json:";

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Say it once per job, not once per rank. */
void coll_complain(const char *variable, const char *setting, const char *why) {
    int initialized, rank = 0;
    if (PMPI_Initialized(&initialized) == MPI_SUCCESS && initialized)
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "libcoll: %s: '%s' is ignored: %s\n", variable, setting, why);
}

locale_t coll_numbers_begin(void) {
    const locale_t made = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return made == (locale_t)0 ? made : uselocale(made);
}

void coll_numbers_end(locale_t before) {
    if (before != (locale_t)0)
        freelocale(uselocale(before));
}

static void complain_of_routine(const char *setting, enum coll_collective collective) {
    char known[1024] = "this library has";
    size_t used = strlen(known);
    for (int i = 0; i < coll_routine_count && used < sizeof known; ++i)
        if (coll_routines[i].collective == collective)
            used +=
                (size_t)snprintf(known + used, sizeof known - used, " %s", coll_routines[i].name);
    coll_complain(FORCE, setting, known);
}

/* One `collective=algorithm` of LIBCOLL_FORCE. */
static void force(char *setting) {
    char *name = strchr(setting, '=');
    if (name == NULL) {
        coll_complain(FORCE, setting, "expected collective=algorithm");
        return;
    }
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        if (strncmp(setting, coll_collective_names[i], (size_t)(name - setting)) != 0 ||
            strlen(coll_collective_names[i]) != (size_t)(name - setting))
            continue;
        settings.forced[i] = coll_find_routine((enum coll_collective)i, name + 1);
        if (settings.forced[i] == NULL)
            complain_of_routine(setting, (enum coll_collective)i);
        return;
    }
    coll_complain(FORCE, setting, "this library has no such collective");
}

static int is_set(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

/* Floating-point results are to depend on p alone: one routine does all calls of a reduction. */
static void fix_order(void) {
    for (int i = 0; i < coll_routine_count; ++i)
        if (coll_routines[i].constraints & COLL_FIXED_ORDER)
            settings.fixed[coll_routines[i].collective] = &coll_routines[i];
}

double coll_bytes_of(const char *text) {
    static const char units[] = "kMG";
    char *end;
    const double number = (double)strtoull(text, &end, 10);
    const char *unit = *end == '\0' ? NULL : strchr(units, *end);
    if (!isdigit((unsigned char)text[0]) || (*end != '\0' && (unit == NULL || end[1] != '\0')))
        return -1;
    return unit == NULL ? number : number * (double)(1LL << (10 * (unit - units + 1)));
}

static void limit_scratch(const char *text) {
    const double most = coll_bytes_of(text);
    if (most < 0) {
        coll_complain(SCRATCH, text, "expected bytes, or a number and k, M or G (times 1024)");
        return;
    }
    settings.scratch_is_set = 1;
    settings.scratch_most = most;
}

static void count_short_calls(const char *text) {
    char *end;
    const long most = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || most > INT_MAX - 1)
        coll_complain(SHORT, text, "expected a number of calls");
    else
        settings.short_calls = (int)most;
}

static void read_environment(void) {
    const char *forced = getenv(FORCE), *scratch = getenv(SCRATCH), *calls = getenv(SHORT);
    settings.disabled = is_set("LIBCOLL_DISABLE");
    settings.tracing = is_set("LIBCOLL_TRACE");
    if (settings.tracing && strncmp(getenv("LIBCOLL_TRACE"), JSON, strlen(JSON)) == 0)
        settings.histogram = strdup(getenv("LIBCOLL_TRACE") + strlen(JSON));
    settings.gpu_support = is_set("LIBCOLL_HOST_BUFFERS") ? NULL : coll_gpu_support();
    settings.scratch_most = SCRATCH_MOST;
    if (scratch != NULL && scratch[0] != '\0')
        limit_scratch(scratch);
    settings.short_calls = SHORT_CALLS;
    if (calls != NULL && calls[0] != '\0')
        count_short_calls(calls);
    if (is_set("LIBCOLL_DETERMINISTIC"))
        fix_order();
#ifdef COLL_ADAPTIVE
    settings.adaptive = coll_options();
#endif
    char *list = forced == NULL ? NULL : strdup(forced);
    char *rest = NULL;
    for (char *setting = list == NULL ? NULL : strtok_r(list, ", ", &rest); setting != NULL;
         setting = strtok_r(NULL, ", ", &rest))
        force(setting);
    free(list);
}

const struct coll_settings *coll_settings(void) {
    pthread_once(&once, read_environment);
    return &settings;
}
