/*
 * Call sites. An address says nothing to other ranks, and ranks may reach one call from different
 * lines. So a call's site never decides by itself what runs: its place in a sequence of calls that
 * all ranks share does.
 *
 * Each rank numbers the sites of a family in the order in which they first call. The ranks compare
 * these numbers, for the first calls, in the reduce at the end of a stage. Where all ranks have the
 * same numbers, and they come again with a period, the family is split: from then on the k-th call
 * belongs to the situation of the site that has the place k mod period, wherever a rank calls from.
 * Each rank counts its calls that came from another site than expected; if there are any at the end
 * of a stage, the family becomes one situation again, for good.
 *
 * The first N sites adapt. All others have the number -1 together: the table of rules serves the
 * calls that have their places in the period.
 */
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"

_Thread_local const void *coll_fortran_site;

/* The number of a site on this rank; -1 beyond the first N: the table of rules serves it. */
static int number_of(struct coll_pattern *pattern, const void *site, int most) {
    for (int i = 0; i < pattern->known; ++i)
        if (pattern->site[i] == site)
            return i;
    if (pattern->known == most)
        return -1;
    pattern->site[pattern->known] = site;
    return pattern->known++;
}

/* Whether a call from a site is the one that is expected at a place of that number. */
static int is_expected(const struct coll_pattern *pattern, int number, const void *site) {
    if (number >= 0)
        return pattern->site[number] == site;
    for (int i = 0; i < pattern->known; ++i)
        if (pattern->site[i] == site)
            return 0;
    return 1;
}

struct coll_situation *coll_site_of(struct coll_family *family, const void *site, int most) {
    struct coll_pattern *pattern = &family->pattern;
    if (pattern->period > 0) {
        const int number = pattern->place[pattern->at];
        pattern->at = pattern->at + 1 == pattern->period ? 0 : pattern->at + 1;
        pattern->strange += !is_expected(pattern, number, site);
        return number < 0 ? NULL : &family->of_site[number];
    }
    ++pattern->calls;
    if (!pattern->is_off && pattern->seen < COLL_WINDOW)
        pattern->window[pattern->seen++] = number_of(pattern, site, most);
    return &family->whole;
}

/* A number below 2^48 that stands for the window: a double holds it exactly. */
double coll_site_hash(const struct coll_pattern *pattern) {
    uint64_t hash = (uint64_t)pattern->seen;
    for (int i = 0; i < pattern->seen; ++i)
        hash = (hash ^ (uint64_t)(pattern->window[i] + 2)) * UINT64_C(0x9E3779B97F4A7C15);
    return (double)(hash >> 16);
}

/* The least period that the window shows at least twice; 0 if there is none. */
static int period_of(const struct coll_pattern *pattern) {
    for (int period = 1; period <= COLL_PATTERN_MOST && 2 * period <= pattern->seen; ++period) {
        int i = period;
        while (i < pattern->seen && pattern->window[i] == pattern->window[i - period])
            ++i;
        if (i == pattern->seen)
            return period;
    }
    return 0;
}

/* On rank 0; `alike` and `strange` are of all ranks. */
enum coll_verdict coll_judge_sites(const struct coll_pattern *pattern, int alike, double strange) {
    if (pattern->is_off)
        return COLL_KEEP;
    if (pattern->period > 0)
        return strange > 0 ? COLL_FOLD : COLL_KEEP;
    if (!alike)
        return COLL_FOLD;
    const int period = period_of(pattern);
    if (period <= 1 || period > COLL_PATTERN_MOST)
        return pattern->seen == COLL_WINDOW ? COLL_FOLD : COLL_KEEP;
    return COLL_SPLIT;
}

/* On rank 0: the places that all ranks are told. */
int coll_places(const struct coll_pattern *pattern, int *place) {
    const int period = period_of(pattern);
    for (int i = 0; i < period; ++i)
        place[i] = pattern->window[i];
    return period;
}

/* On all ranks, behind the same call. */
int coll_split(struct coll_family *family, int period, const int *place) {
    struct coll_pattern *pattern = &family->pattern;
    family->of_site = calloc((size_t)pattern->known, sizeof *family->of_site);
    if (family->of_site == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(pattern->place, place, (size_t)period * sizeof *place);
    pattern->at = (int)(pattern->calls % (unsigned long)period);
    pattern->period = period;
    pattern->strange = 0;
    return MPI_SUCCESS;
}

/* On all ranks: whatever the site, from the next call on. */
void coll_unite(struct coll_family *family) {
    struct coll_pattern *pattern = &family->pattern;
    for (int i = 0; family->of_site != NULL && i < pattern->known; ++i)
        coll_close(&family->of_site[i]);
    free(family->of_site);
    family->of_site = NULL;
    pattern->period = 0;
    pattern->is_off = 1;
}
