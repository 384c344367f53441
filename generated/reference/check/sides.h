/* One side of a rank's call in the conformance check: datatype, blocks, memory. */
#ifndef SIDES_H
#define SIDES_H

#include <stdlib.h>

#include "trials.h"

/* The bytes around the data, and the alignment of whole sides. */
enum { GUARD = 64 };

/* If blocks differ in length, the longest is LONGEST times as long as the trial says. */
enum { LONGEST = 2 };

struct side {
    int count; /* elements of a block */
    MPI_Datatype type;
    int created;     /* the type is ours to free */
    MPI_Aint origin; /* of the address that MPI gets, in the whole side */
    MPI_Aint extent; /* of an element */
    MPI_Aint bytes;  /* of the whole side: one block per rank, or one message, and guards */
    int *counts, *displacements; /* of the blocks, if they differ */
};

/* The rank that makes the call. */
struct caller {
    const struct coll_descriptor *descriptor;
    MPI_Comm comm;
    int rank, size;
};

/* The layouts of a broadcast may differ from rank to rank if their signatures agree; so may the
 * layouts of a reduction. */
static inline const struct layout *layout_of(const struct caller *caller, const struct trial *trial,
                                             int sends) {
    const int odd = caller->rank % 2;
    if (trial->operand != NULL)
        return trial->operand->shapes[odd] != NULL ? trial->operand->shapes[odd]->layout : NULL;
    if (caller->descriptor->send == COLL_NOTHING && odd)
        sends = 1;
    return sends ? trial->pair->send : trial->pair->recv;
}

static inline int make_type(const struct operand *operand, const struct layout *layout, int blocks,
                            struct side *side) {
    side->created = layout != NULL;
    side->count = blocks * (operand != NULL ? operand->per_block : layout->per_block);
    if (!side->created) {
        side->type = operand->type;
        return MPI_SUCCESS;
    }
    COLL_TRY(layout->create(&side->type));
    return PMPI_Type_commit(&side->type);
}

/* Make room for `elements` elements on both sides of the address. */
static inline int measure_side(MPI_Aint elements, struct side *side) {
    MPI_Aint lower_bound, true_lower_bound, true_extent;
    COLL_TRY(PMPI_Type_get_extent(side->type, &lower_bound, &side->extent));
    COLL_TRY(PMPI_Type_get_true_extent(side->type, &true_lower_bound, &true_extent));
    const MPI_Aint way = elements * side->extent;
    side->origin = GUARD + (true_lower_bound < 0 ? -true_lower_bound : 0) + (way < 0 ? -way : 0);
    side->bytes = side->origin + (way > 0 ? way : 0) + true_lower_bound + true_extent + GUARD;
    side->bytes += GUARD - side->bytes % GUARD;
    return MPI_SUCCESS;
}

/* If blocks are sparse, one block in SPARSE has data. */
enum { SPARSE = 5 };

/*
 * Blocks of 0 to LONGEST times the length of the trial, depending on sender and receiver; if
 * symmetric, the same in both directions.
 */
static inline int weight(const struct trial *trial, int from, int to, int symmetric) {
    const int empty = trial->sparse && (from + to) % SPARSE != 0;
    return empty ? 0 : ((symmetric ? 2 * from : from) + 2 * to) % (LONGEST + 1);
}

/*
 * Lengths and displacements of a side's blocks, the last one first and with gaps in between. If all
 * ranks send to one, rank 0 gets some data: otherwise MPICH 4.3's reduce_scatter in place fails. In
 * place, two ranks send each other the same amount.
 */
static inline int make_blocks(const struct caller *caller, const struct trial *trial, int sends,
                              struct side *side) {
    const struct coll_descriptor *descriptor = caller->descriptor;
    const int one_to = descriptor->send != COLL_ALL, one_from = descriptor->recv != COLL_ALL;
    side->counts = calloc(2 * (size_t)caller->size, sizeof *side->counts);
    if (side->counts == NULL)
        return MPI_ERR_NO_MEM;
    side->displacements = side->counts + caller->size;
    for (int i = 0; i < caller->size; ++i) {
        const int from = one_from ? 1 : sends ? caller->rank : i;
        const int to = one_to ? 0 : sends || one_from ? i : caller->rank;
        const int symmetric = trial->in_place && !one_to && !one_from;
        side->counts[i] = side->count * weight(trial, from, to, symmetric);
        side->displacements[i] = side->count * LONGEST * (caller->size - 1 - i);
    }
    return MPI_SUCCESS;
}

static inline int make_side(const struct caller *caller, const struct trial *trial, int sends,
                            struct side *side) {
    const struct coll_descriptor *descriptor = caller->descriptor;
    const enum coll_side holds = sends ? descriptor->send : descriptor->recv;
    const int all = holds == COLL_ALL || (trial->in_place && descriptor->send == COLL_ALL);
    *side = (struct side){0};
    COLL_TRY(make_type(trial->operand, layout_of(caller, trial, sends), trial->blocks, side));
    if (descriptor->uneven)
        COLL_TRY(make_blocks(caller, trial, sends, side));
    return measure_side((MPI_Aint)(all ? caller->size : 1) * (descriptor->uneven ? LONGEST : 1) *
                            side->count,
                        side);
}

/*
 * How much of a receiving side a call defines: all of it, as parts that a rank does not receive
 * stay as they were; but if blocks are reduced in place, only the result, which comes first.
 */
static inline MPI_Aint defined_bytes(const struct caller *caller, const struct trial *trial,
                                     const struct side *recv) {
    const struct coll_descriptor *descriptor = caller->descriptor;
    if (!descriptor->reduces || descriptor->send != COLL_ALL || !trial->in_place)
        return recv->bytes;
    return GUARD + recv->extent * (descriptor->uneven ? recv->counts[caller->rank] : recv->count);
}

static inline int free_side(struct side *side) {
    free(side->counts);
    return side->created ? PMPI_Type_free(&side->type) : MPI_SUCCESS;
}

/* Fill with any bytes or, for reductions, with numbers so small that results are exact. */
static inline void fill(const struct trial *trial, const struct side *side, char *buffer, int seed,
                        int rank) {
    unsigned state = (unsigned)seed * 2654435761U + 12345U;
    const struct operand *operand = trial->operand;
    const MPI_Aint step = operand == NULL              ? 1
                          : operand->shapes[0] == NULL ? side->extent
                                                       : (MPI_Aint)sizeof(int);
    memset(buffer, 0x55, (size_t)side->bytes);
    for (MPI_Aint i = 0; i + step <= side->bytes; i += step) {
        state = state * 1664525U + 1013904223U;
        if (operand == NULL)
            buffer[i] = (char)(state >> 24);
        else
            write_number(operand->number, operand->values, buffer + i, state >> 12, rank);
    }
}

#endif
