/* The calls that a conformance check makes: datatypes, lengths, roots, operations. */
#ifndef TRIALS_H
#define TRIALS_H

#include "conformance.h"
#include "operations.h"

/* Numbers of blocks in a message, mostly of BLOCK_BYTES; single bytes come in odd numbers. */
static const int quick_blocks[] = {0, 1, 43};
static const int full_blocks[] = {0, 1, 2, 7, 43, 170, 683, 3001};

/* 16 KB: several segments. A quick check sends it once, as it may run on a slow cluster. */
enum { LONG_BLOCKS = 683 };

/* 288 KB: past eager limits and a pipeline's depth. For two kinds of data only. A quick check
 * only broadcasts it, once: p such messages would cost much. */
enum { LONGEST_BLOCKS = 12007, LONG_KINDS = 2 };

/* Elements of a block with data, if most blocks are empty. */
enum { SPARSE_BLOCKS = 7 };

/* A quick check takes every SHARE-th of MPI's own operations and types, others each time. */
enum { PREDEFINED_BLOCKS = 7, SHARE = 40 };

/* If a routine was right before, a check has one of this many short trials, others each time. */
enum { AGAIN_SHARE = 4 };

/* The most ranks on which a full check tries all roots and sends the longest messages. */
enum { SMALL = 8 };

enum {
    KINDS_MOST = (int)PAIRS > (int)OPERANDS ? (int)PAIRS : (int)OPERANDS,
    CASES_MOST = KINDS_MOST * 4 * (sizeof full_blocks / sizeof *full_blocks + 1) + SMALL +
                 OPERATIONS * ELEMENTS
};

/* One call to compare: its datatypes or operation, its length, and its root. */
struct trial {
    const struct pair *pair;
    const struct operand *operand;
    int blocks, root, in_place;
    int sparse;        /* if blocks differ in length, most of them are empty */
    int by_definition; /* the MPI library cannot do it: compare with MPI's definition */
};

struct trials {
    int count;
    struct trial list[CASES_MOST];
};

/* The common part of trials that are listed together. */
struct series {
    const struct coll_descriptor *descriptor;
    enum conformance_level level;
    int size;
    int reorders; /* for a routine that changes the order of operands */
    int native;   /* for the MPI library itself, at least at some sizes */
    int shared;   /* some of the ranks share memory */
    int turn;     /* tells quick checks apart */
    int data;     /* number of the pair or of the operand */
    const struct operand *operand;
    int root, in_place, sparse;
};

static inline int is_ordered(const struct operand *operand) {
    return operand->function != NULL && !operand->commutes;
}

/* Open MPI 4.1's reduce_scatter in place, with operands in order, uses a rank's whole buffer. */
static inline int native_leaves_other_data(const struct series *series) {
#ifdef OPEN_MPI
    return is_ordered(series->operand);
#else
    (void)series;
    return 0;
#endif
}

/*
 * MPICH 4.3 itself cannot do these calls: gather and scatter of types such as MPI_DOUBLE_INT;
 * alltoall in place of these and of structures (both end with an error); reduce_scatter of operands
 * that do not commute and have gaps (it overruns its memory); and reduce_scatter in place, where
 * long messages overlap themselves. With equal blocks the result is right, but the data behind it
 * changes.
 */
static inline int native_can(const struct series *series, int blocks) {
    const struct coll_descriptor *descriptor = series->descriptor;
    const int scatters = descriptor->send == COLL_ALL;
    if (descriptor->reduces)
        return !scatters ||
               ((!series->in_place ||
                 (blocks <= LONG_BLOCKS && !native_leaves_other_data(series))) &&
                !(is_ordered(series->operand) && series->operand->shapes[0] != &contiguous_shape));
    const struct layout *layout = pairs[series->data].recv;
    if (descriptor->rooted)
        return layout != &pair_layout || descriptor->send == COLL_NOTHING;
    if (layout != &pair_layout && layout != &scattered_layout)
        return 1;
    return !scatters || !series->in_place;
}

/*
 * If ranks share memory, MPICH 4.3's reduce and allreduce of operands that commute read the data of
 * other ranks with the layout of their own (its issue 6555). Where layouts differ from rank to rank
 * the results are wrong, and so are those of routines with such a call as a part: they are left
 * out.
 */
static inline int memory_misleads_native(const struct series *series) {
#ifdef MPICH
    const struct operand *operand = series->operand;
    return series->shared && operand->commutes && operand->shapes[0] != operand->shapes[1];
#else
    (void)series;
    return 0;
#endif
}

static inline void add_trial(struct trials *trials, const struct series *series, int blocks) {
    const int by_definition = !native_can(series, blocks);
    if (series->native && by_definition)
        return;
    trials->list[trials->count++] = (struct trial){
        .pair = series->descriptor->reduces ? NULL : &pairs[series->data],
        .operand = series->operand,
        .blocks = blocks,
        .root = series->root,
        .in_place = series->in_place,
        .sparse = series->sparse,
        .by_definition = by_definition,
    };
}

static inline void add_lengths(struct trials *trials, const struct series *series) {
    const int full = series->level == CONFORMANCE_FULL;
    const int *blocks = full ? full_blocks : quick_blocks;
    const int count = full ? sizeof full_blocks / sizeof *full_blocks
                           : sizeof quick_blocks / sizeof *quick_blocks;
    const int one = series->descriptor->send != COLL_ALL && series->descriptor->recv != COLL_ALL;
    for (int i = 0; i < count; ++i)
        add_trial(trials, series, blocks[i]);
    if (full && series->size <= SMALL && series->data < LONG_KINDS)
        add_trial(trials, series, LONGEST_BLOCKS);
    if (!full && series->data == 0 && series->root == 0 && !series->in_place)
        add_trial(trials, series, one ? LONGEST_BLOCKS : LONG_BLOCKS);
}

/* Operands that do not commute are not for routines that reorder them. */
static inline int routine_can(const struct series *series) {
    return series->operand == NULL || !series->reorders || !is_ordered(series->operand);
}

/* From the first, the last and a middle root; in place at the last one. */
static inline void add_roots(struct trials *trials, struct series *series) {
    const int roots[] = {0, series->size - 1, series->size / 2};
    for (int i = 0; i < 3 && (i == 0 || series->size > i); ++i) {
        series->root = roots[i];
        add_lengths(trials, series);
    }
    series->root = series->size - 1;
    series->in_place = series->descriptor->in_place != COLL_NEVER;
    if (series->in_place)
        add_lengths(trials, series);
}

/* In all lengths; if they differ from block to block, also with most blocks empty. */
static inline void add_lengths_and_sparse(struct trials *trials, const struct series *series) {
    struct series sparse = *series;
    sparse.sparse = 1;
    add_lengths(trials, series);
    if (series->descriptor->uneven && !series->descriptor->reduces)
        add_trial(trials, &sparse, SPARSE_BLOCKS);
}

/* Without and with MPI_IN_PLACE. */
static inline void add_both(struct trials *trials, struct series *series) {
    add_lengths_and_sparse(trials, series);
    series->in_place = series->descriptor->in_place != COLL_NEVER;
    if (series->in_place)
        add_lengths_and_sparse(trials, series);
}

/* All telling kinds of data, in all lengths. */
static inline void add_telling(struct trials *trials, const struct series *start) {
    const int reduces = start->descriptor->reduces;
    for (int data = 0; data < (reduces ? (int)OPERANDS : (int)PAIRS); ++data) {
        struct series series = *start;
        series.data = data;
        series.operand = reduces ? &operands[data] : NULL;
        if (!routine_can(&series) || (reduces && memory_misleads_native(&series)))
            continue;
        if (start->descriptor->rooted)
            add_roots(trials, &series);
        else
            add_both(trials, &series);
    }
}

/* MPI's own operations on its own types: roots in turn, every second one in place. */
static inline void add_predefined_operations(struct trials *trials, const struct series *start) {
    const int count = list_predefined(), every = start->level == CONFORMANCE_FULL ? 1 : SHARE;
    for (int i = start->turn % every; i < count; i += every) {
        struct series series = *start;
        series.operand = &predefined[i];
        series.root = start->descriptor->rooted ? i % start->size : 0;
        series.in_place = i / every % 2;
        add_trial(trials, &series, PREDEFINED_BLOCKS);
    }
}

/* From every root. */
static inline void add_every_root(struct trials *trials, const struct series *start) {
    struct series series = *start;
    series.operand = start->descriptor->reduces ? &operands[0] : NULL;
    for (; series.root < series.size; ++series.root)
        add_trial(trials, &series, full_blocks[1]);
}

static inline void list_trials(struct trials *trials, const struct series *start) {
    if (start->descriptor->send == COLL_NOTHING && start->descriptor->recv == COLL_NOTHING) {
        add_trial(trials, start, 0);
        return;
    }
    add_telling(trials, start);
    if (start->descriptor->reduces)
        add_predefined_operations(trials, start);
    if (start->descriptor->rooted && start->level == CONFORMANCE_FULL && start->size <= SMALL)
        add_every_root(trials, start);
}

/* Leave out short trials if the routine was right so many times before. */
static inline void leave_out(struct trials *trials, int times) {
    int kept = 0;
    for (int i = 0; i < trials->count; ++i)
        if (times == 0 || trials->list[i].blocks >= LONG_BLOCKS || (i + times) % AGAIN_SHARE == 0)
            trials->list[kept++] = trials->list[i];
    trials->count = kept;
}

#endif
