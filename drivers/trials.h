/* The calls that a conformance check makes: datatypes, lengths, roots, operations. */
#ifndef TRIALS_H
#define TRIALS_H

#include "conformance.h"
#include "operands.h"

/* Blocks, of BLOCK_BYTES each, in a message. */
static const int quick_blocks[] = {0, 1, 43};
static const int full_blocks[] = {0, 1, 2, 7, 43, 170, 683, 3001};

/* 16 KB: several segments. A quick check sends it once, as it may run on a slow cluster. */
enum { LONG_BLOCKS = 683 };

/* 288 KB: past eager limits and a pipeline's depth. For two kinds of data only; a quick check
 * broadcasts it once, which costs little where p messages of it would cost much. */
enum { LONGEST_BLOCKS = 12007, LONG_KINDS = 2 };

/* Up to so many ranks a full check tries all roots and sends the longest messages. */
enum { SMALL = 8 };

enum { CASES_MOST = PAIRS * 4 * (sizeof full_blocks / sizeof *full_blocks + 1) + SMALL };

/* One call to compare: on which datatypes, or with which operation, how much, from where. */
struct trial {
    const struct pair *pair;
    const struct operand *operand;
    int blocks, root, in_place;
};

struct trials {
    int count;
    struct trial list[CASES_MOST];
};

/* What is common to the trials that are listed together. */
struct series {
    const struct coll_case *kind;
    enum conformance_level level;
    int size;
    int data; /* number of the pair or of the operand */
    int root, in_place;
};

/* Open MPI 4.1's reduce_scatter in place, without commuting, uses all of the buffer of rank 0. */
static inline int leaves_other_data(const struct series *series) {
#ifdef OPEN_MPI
    const struct operand *operand = &operands[series->data];
    return series->kind->uneven && operand->function != NULL && !operand->commutes;
#else
    (void)series;
    return 0;
#endif
}

/*
 * MPICH 4.3's own reduce_scatter in place overlaps itself in long messages; where blocks are equal
 * it is right, but leaves other data behind the result than was there.
 */
static inline int native_can_send(const struct series *series, int blocks) {
    return !series->in_place || !series->kind->reduces || series->kind->send != CASE_ALL ||
           (blocks <= LONG_BLOCKS && !leaves_other_data(series));
}

static inline void add_trial(struct trials *trials, const struct series *series, int blocks) {
    if (!native_can_send(series, blocks))
        return;
    trials->list[trials->count++] = (struct trial){
        .pair = series->kind->reduces ? NULL : &pairs[series->data],
        .operand = series->kind->reduces ? &operands[series->data] : NULL,
        .blocks = blocks,
        .root = series->root,
        .in_place = series->in_place,
    };
}

static inline void add_lengths(struct trials *trials, const struct series *series) {
    const int full = series->level == CONFORMANCE_FULL;
    const int *blocks = full ? full_blocks : quick_blocks;
    const int count = full ? sizeof full_blocks / sizeof *full_blocks
                           : sizeof quick_blocks / sizeof *quick_blocks;
    const int one = series->kind->send != CASE_ALL && series->kind->recv != CASE_ALL;
    for (int i = 0; i < count; ++i)
        add_trial(trials, series, blocks[i]);
    if (full && series->size <= SMALL && series->data < LONG_KINDS)
        add_trial(trials, series, LONGEST_BLOCKS);
    if (!full && series->data == 0 && series->root == 0 && !series->in_place)
        add_trial(trials, series, one ? LONGEST_BLOCKS : LONG_BLOCKS);
}

/*
 * What MPICH 4.3 itself cannot do: alltoall in place, gather and scatter of types such as
 * MPI_DOUBLE_INT (it ends with an error), and reduce_scatter of operands that do not commute and
 * begin before their address (it overruns its memory).
 */
static inline int native_can(const struct series *series) {
    const struct coll_case *kind = series->kind;
    if (kind->reduces)
        return kind->send != CASE_ALL || operands[series->data].places[0] >= 0;
    if (pairs[series->data].recv != &pair_layout || kind->uneven)
        return 1;
    if (kind->rooted)
        return kind->send == CASE_NOTHING;
    return kind->send != CASE_ALL || !series->in_place;
}

/* Operands that do not commute are not for routines that reorder them. */
static inline int routine_can(const struct series *series, int reorders) {
    const struct operand *operand = &operands[series->data];
    return !series->kind->reduces || !reorders || operand->function == NULL || operand->commutes;
}

/* From the first, the last and a middle root; in place at the last one. */
static inline void add_roots(struct trials *trials, struct series *series) {
    const int roots[] = {0, series->size - 1, series->size / 2};
    for (int i = 0; i < 3 && (i == 0 || series->size > i); ++i) {
        series->root = roots[i];
        add_lengths(trials, series);
    }
    series->root = series->size - 1;
    series->in_place = series->kind->in_place != CASE_NEVER;
    if (series->in_place)
        add_lengths(trials, series);
}

static inline void list_trials(struct trials *trials, const struct coll_case *kind, int reorders,
                               enum conformance_level level, int size) {
    struct series series = {.kind = kind, .level = level, .size = size};
    if (kind->send == CASE_NOTHING && kind->recv == CASE_NOTHING) {
        add_trial(trials, &series, 0);
        return;
    }
    for (int data = 0; data < (kind->reduces ? (int)OPERANDS : (int)PAIRS); ++data) {
        series = (struct series){.kind = kind, .level = level, .size = size, .data = data};
        if (!routine_can(&series, reorders) || !native_can(&series))
            continue;
        if (kind->rooted) {
            add_roots(trials, &series);
            continue;
        }
        add_lengths(trials, &series);
        series.in_place = kind->in_place == CASE_EVERYWHERE;
        if (series.in_place && native_can(&series))
            add_lengths(trials, &series);
    }
    series = (struct series){.kind = kind, .level = level, .size = size};
    for (; kind->rooted && level == CONFORMANCE_FULL && size <= SMALL && series.root < size;
         ++series.root)
        add_trial(trials, &series, full_blocks[1]);
}

#endif
