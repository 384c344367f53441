/* A request to the measuring session, read from the words of a command. */
#ifndef REQUEST_H
#define REQUEST_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrivals.h"
#include "coll.h"
#include "metric.h"
#include "serve.h"
#include "timing.h"

/* The most routines in one command; the longest computation, in milliseconds. */
enum { ROUTINES = 512, COMPUTATION_MOST = 60000 };

struct candidate {
    const char *text;
    const struct coll_routine *routine;
    struct coll_parameters parameters;
    struct coll_part parts[COLL_PARTS_MOST]; /* of a composition, if their routines are given */
};

struct request {
    enum coll_collective collective;
    const struct timing *timing;
    double computation; /* in milliseconds */
    enum metric metric;
    struct arrivals arrivals; /* if ranks come late */
    long bytes, settle, calls, repetitions;
    int candidate_count;
    struct candidate candidates[ROUTINES];
};

static const char *const parameter_names[] = {COLL_PARAMETER_NAMES};

/* Read NAME:parameter=value:... ; modifies `text`. Returns 0 if it is wrong. */
static inline int parse_routine(char *text, enum coll_collective collective,
                                struct coll_part *out) {
    char *rest = NULL;
    const char *name = strtok_r(text, ":", &rest);
    out->routine = name == NULL ? NULL : coll_find_routine(collective, name);
    if (out->routine == NULL)
        return 0;
    out->parameters = out->routine->defaults;
    for (char *item = strtok_r(NULL, ":", &rest); item != NULL; item = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(item, '=');
        int known = 0;
        if (value == NULL)
            return 0;
        *value++ = '\0';
        for (int i = 0; parameter_names[i] != NULL; ++i) {
            if (strcmp(item, parameter_names[i]) != 0)
                continue;
            *coll_parameter(&out->parameters, i) = atoi(value);
            known = 1;
        }
        if (!known)
            return 0;
    }
    return 1;
}

/* Read COLLECTIVE/NAME:parameter=value:... for each part of a composition, with + before each. */
static inline int parse_parts(char *text, struct candidate *out) {
    char *rest = NULL;
    int count = 0;
    for (char *part = strtok_r(text, "+", &rest); part != NULL; part = strtok_r(NULL, "+", &rest)) {
        char *name = strchr(part, '/');
        const enum coll_collective collective =
            count == COLL_PARTS_MOST ? COLL_COLLECTIVES : coll_part_collective(out->routine, count);
        if (name == NULL || collective == COLL_COLLECTIVES)
            return 0;
        *name++ = '\0';
        if (strcmp(part, coll_collective_names[collective]) != 0 ||
            !parse_routine(name, collective, &out->parts[count++]))
            return 0;
    }
    if (count < COLL_PARTS_MOST && coll_part_collective(out->routine, count) != COLL_COLLECTIVES)
        return 0;
    out->parameters.parts = out->parts;
    return 1;
}

/*
 * Read NAME:parameter=value:...+COLLECTIVE/NAME:... into a candidate, which must not move;
 * modifies `text`. Returns 0 if it is wrong.
 */
static inline int parse_candidate(char *text, enum coll_collective collective,
                                  struct candidate *out) {
    struct coll_part whole;
    char *parts = strchr(text, '+');
    if (parts != NULL)
        *parts++ = '\0';
    if (!parse_routine(text, collective, &whole))
        return 0;
    out->routine = whole.routine;
    out->parameters = whole.parameters;
    return parts == NULL || parse_parts(parts, out);
}

static inline int parse_candidates(char *words, struct request *request) {
    char *rest = NULL;
    for (char *word = strtok_r(words, " \n", &rest); word != NULL;
         word = strtok_r(NULL, " \n", &rest)) {
        if (request->candidate_count == ROUTINES) {
            complain("too many routines, the first that is not taken", word);
            return 0;
        }
        struct candidate *candidate = &request->candidates[request->candidate_count++];
        candidate->text = strdup(word);
        if (candidate->text == NULL || !parse_candidate(word, request->collective, candidate)) {
            complain("unknown routine", candidate->text == NULL ? "" : candidate->text);
            return 0;
        }
    }
    return 1;
}

static inline int parse_collective(const char *name, enum coll_collective *collective) {
    for (int i = 0; i < COLL_COLLECTIVES; ++i) {
        if (strcmp(coll_collective_names[i], name) == 0) {
            *collective = (enum coll_collective)i;
            return 1;
        }
    }
    complain("unknown collective", name);
    return 0;
}

/* All mechanisms of this session; NULL ends the table. */
extern const struct timing *const timings[];

static inline const struct timing *find_timing(const char *name) {
    for (int i = 0; timings[i] != NULL; ++i)
        if (strcmp(timings[i]->name, name) == 0)
            return timings[i];
    return NULL;
}

/* Read NAME, or NAME:… if ranks come late. Returns 0 if it is wrong. */
static inline int parse_timing(char *text, struct request *request) {
    char *plan = strchr(text, ':');
    if (plan != NULL)
        *plan++ = '\0';
    request->timing = find_timing(text);
    if (request->timing == NULL || (plan != NULL) != request->timing->late)
        return 0;
    return plan == NULL || arrivals_parse(plan, &request->arrivals);
}

/* Times of ranks that come late are not those of the slowest one: it was the first to come. */
static inline int parse_metric(const char *text, struct request *request) {
    request->metric = metric_of(text);
    return request->metric < METRICS &&
           request->metric != (request->timing->late ? METRIC_SLOWEST : METRIC_LAST);
}

/* Read the words of a measure command before its routines, which are at *rest then. */
static inline int parse_numbers(char *words, struct request *request, int *rest) {
    static char collective[64], timing[160], metric[64];
    if (sscanf(words, "%63s %ld %159s %lf %63s %ld %ld %ld %n", collective, &request->bytes, timing,
               &request->computation, metric, &request->settle, &request->calls,
               &request->repetitions, rest) != 8) {
        complain("not a measure command", "see the head of session.c");
        return 0;
    }
    if (request->bytes < 0 || request->bytes > INT_MAX || request->calls < 1 ||
        request->repetitions < 1 || !parse_timing(timing, request) ||
        !parse_metric(metric, request) ||
        !(request->computation >= 0 && request->computation <= COMPUTATION_MOST)) {
        complain("not a measure command", timing);
        return 0;
    }
    return parse_collective(collective, &request->collective);
}

#endif
