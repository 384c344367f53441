/*
 * Call sites. An address says nothing to other ranks, and ranks may reach one call from different
 * lines. So a call's site never decides by itself what runs: its place in a sequence of calls that
 * all ranks share does.
 *
 * Each rank numbers the sites of a family in the order in which they first call. The ranks compare
 * these numbers, for the calls of a window, in the reduce at the end of a stage. Where all ranks
 * have the same numbers, and these come again with a period, the family is split: from then on the
 * k-th call belongs to the situation of the site that has the place k mod period, wherever a rank
 * calls from. A few calls before the first period do not count, as programs make some before their
 * loops. Each rank counts its calls that came from another site than expected; if there are any at
 * the end of a stage, the family becomes one situation again, and a new window begins. After
 * COLL_WINDOWS such periods, sites are off for good.
 *
 * The first N sites adapt. All others have the number -1 together: the table of rules serves the
 * calls that have their places in the period.
 */
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
    ++pattern->calls; /* beyond the window, too: it says which place comes next */
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

/*
 * The least period that the window ends with, from its call *begin on: at least twice, and over as
 * many calls as a period may have, as a shorter one may be a part of a longer one. 0 if there is
 * none.
 */
static int period_of(const struct coll_pattern *pattern, int *begin) {
    for (int period = 1; period <= COLL_PATTERN_MOST; ++period) {
        const int least = 2 * period > COLL_PATTERN_MOST ? 2 * period : COLL_PATTERN_MOST;
        int first = pattern->seen - period;
        while (first > 0 && pattern->window[first - 1] == pattern->window[first - 1 + period])
            --first;
        if (first <= COLL_PATTERN_MOST && pattern->seen - first >= least) {
            *begin = first;
            return period;
        }
    }
    return 0;
}

/* On rank 0; `alike` and `strange` are of all ranks. */
enum coll_verdict coll_judge_sites(const struct coll_pattern *pattern, int alike, double strange) {
    int begin;
    if (pattern->is_off)
        return COLL_KEEP;
    if (pattern->period > 0)
        return strange > 0 ? COLL_FOLD : COLL_KEEP;
    if (!alike)
        return COLL_FOLD;
    if (period_of(pattern, &begin) <= 1)
        return pattern->seen == COLL_WINDOW ? COLL_FOLD : COLL_KEEP;
    return COLL_SPLIT;
}

/* On rank 0: the places that all ranks are told. */
int coll_places(const struct coll_pattern *pattern, int *place) {
    int begin = 0;
    const int period = period_of(pattern, &begin);
    for (int i = begin; i < begin + period; ++i)
        place[i % period] = pattern->window[i];
    return period;
}

/* On all ranks, after the same call. */
void coll_split(struct coll_family *family, int period, const int *place) {
    struct coll_pattern *pattern = &family->pattern;
    memcpy(pattern->place, place, (size_t)period * sizeof *place);
    pattern->at = (int)(pattern->calls % (unsigned long)period);
    pattern->period = period;
    pattern->strange = 0;
}

/* On all ranks: whatever the site, from the next call on. */
void coll_unite(struct coll_family *family) {
    struct coll_pattern *pattern = &family->pattern;
    for (int i = 0; pattern->period > 0 && i < coll_settings()->adaptive->sites; ++i) {
        coll_close(&family->of_site[i]);
        family->of_site[i] = (struct coll_situation){0};
    }
    const int windows = pattern->windows + (pattern->period > 0);
    *pattern = (struct coll_pattern){.is_off = windows == COLL_WINDOWS, .windows = windows};
}
