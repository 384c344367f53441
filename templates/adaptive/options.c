/*
 * LIBCOLL_ADAPTIVE=POLICY[,NAME=VALUE]…: which policy adapts, and its numbers. Alike on all ranks:
 * see peers.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"
#include "ticks.h"

static const char NAME[] = "LIBCOLL_ADAPTIVE";

/* As Faraj 2006, §4.3.1.2: ITER 10, δ 2, ε 10 %; N, X and the bound of δ are ours. */
static const struct coll_options defaults = {
    .sites = 8,
    .sizes = 16,
    .iterations = 10,
    .delta = 2,
    .delta_bound = 64,
    .epsilon = 0.1,
    .seed = 1,
};

static struct coll_options options;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A number of that text between two others, or -1. */
static double number_of(const char *text, double least, double most) {
    char *end;
    const locale_t before = coll_numbers_begin();
    const double number = strtod(text, &end);
    coll_numbers_end(before);
    return end == text || *end != '\0' || !(least <= number && number <= most) ? -1 : number;
}

/* One `name=value`; returns what is wrong, or NULL. */
static const char *set(struct coll_options *made, char *setting) {
    const struct {
        const char *name;
        int *value;
        int least, most;
        const char *wrong;
    } whole[] = {
        {"sites", &made->sites, 0, COLL_SITES_MOST, "expected sites=0 to sites=16"},
        {"sizes", &made->sizes, 1, COLL_SIZES_MOST, "expected sizes=1 to sizes=64"},
        {"iter", &made->iterations, 1, COLL_ITERATIONS_MOST, "expected iter=1 to iter=64"},
        {"delta", &made->delta, 1, COLL_DELTA_MOST, "expected delta=1 to delta=64"},
        {"bound", &made->delta_bound, 1, COLL_DELTA_MOST, "expected bound=1 to bound=64"},
    };
    char *value = strchr(setting, '=');
    if (value == NULL)
        return "expected POLICY,NAME=VALUE,…";
    *value++ = '\0';
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; ++i)
        if (strcmp(setting, whole[i].name) == 0) {
            const double number = number_of(value, whole[i].least, whole[i].most);
            if (number < 0 || number != (int)number)
                return whole[i].wrong;
            *whole[i].value = (int)number;
            return NULL;
        }
    if (strcmp(setting, "epsilon") == 0) {
        made->epsilon = number_of(value, 0, 10);
        return made->epsilon < 0 ? "expected epsilon=0 to epsilon=10" : NULL;
    }
    if (strcmp(setting, "seed") == 0) {
        const double number = number_of(value, 0, 4294967295.0);
        made->seed = (uint64_t)number;
        return number < 0 ? "expected seed=0 to seed=4294967295" : NULL;
    }
    return "expected sites, sizes, iter, delta, bound, epsilon or seed";
}

/* What is wrong with a setting, or NULL. */
static const char *parse(const char *text, struct coll_options *made) {
    const size_t length = strcspn(text, ",");
    made->policy = coll_find_policy(text, length);
    if (made->policy == NULL)
        return coll_policy_names();
    char *list = strdup(text + length);
    char *rest = NULL;
    const char *wrong = list == NULL ? "there is no memory" : NULL;
    for (char *setting = list == NULL ? NULL : strtok_r(list, ",", &rest);
         setting != NULL && wrong == NULL; setting = strtok_r(NULL, ",", &rest))
        wrong = set(made, setting);
    free(list);
    return wrong == NULL && made->delta > made->delta_bound ? "delta is above its bound" : wrong;
}

/* Policies try a candidate in a few calls, whatever ITER and the bound are. */
int coll_stage_most(void) {
    enum { TRIALS = 16 };
    const int period = options.iterations * options.delta_bound;
    return period > TRIALS ? period : TRIALS;
}

static void read_environment(void) {
    const char *text = getenv(NAME), *learn = getenv("LIBCOLL_LEARN");
    struct coll_options made = defaults;
    if (text == NULL || text[0] == '\0' || strcmp(text, "0") == 0)
        return;
    const char *wrong = parse(text, &made);
    if (wrong != NULL) {
        coll_complain(NAME, text, wrong);
        return;
    }
    made.learn = learn == NULL || learn[0] == '\0' ? NULL : strdup(learn);
    coll_start_ticks();
    options = made;
}

const struct coll_options *coll_options(void) {
    pthread_once(&once, read_environment);
    return options.policy == NULL ? NULL : &options;
}
