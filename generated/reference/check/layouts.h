/* Datatypes of many shapes, in pairs with the same signature, for the conformance check. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include "coll.h"

enum { BLOCK_BYTES = 24 };

/* A datatype; `per_block` elements are a block: BLOCK_BYTES, fewer for single bytes. */
struct layout {
    const char *name;
    int per_block;
    int (*create)(MPI_Datatype *type);
};

static int create_int(MPI_Datatype *type) {
    return PMPI_Type_dup(MPI_INT, type);
}

static int create_byte(MPI_Datatype *type) {
    return PMPI_Type_dup(MPI_BYTE, type);
}

/* A double and an integer: predefined, yet with gaps between elements. */
static int create_pair(MPI_Datatype *type) {
    return PMPI_Type_dup(MPI_DOUBLE_INT, type);
}

static int create_contiguous(MPI_Datatype *type) {
    return PMPI_Type_contiguous(6, MPI_INT, type);
}

static int create_vector(MPI_Datatype *type) {
    return PMPI_Type_vector(3, 2, 5, MPI_INT, type);
}

/* Resize `inner` to a lower bound and an extent in integers, and free it. */
static int resize(MPI_Datatype inner, int lower_bound, int extent, MPI_Datatype *type) {
    COLL_TRY(PMPI_Type_create_resized(inner, lower_bound * (MPI_Aint)sizeof(int),
                                      extent * (MPI_Aint)sizeof(int), type));
    return PMPI_Type_free(&inner);
}

/* Six integers out of order, with a gap after them: the size says nothing about the layout. */
static int create_permuted(MPI_Datatype *type) {
    const int lengths[] = {3, 2, 1};
    const int displacements[] = {3, 1, 0};
    MPI_Datatype indexed;
    COLL_TRY(PMPI_Type_indexed(3, lengths, displacements, MPI_INT, &indexed));
    return resize(indexed, 0, 8, type);
}

/* Out of order without any gap: size and extent are those of plain integers. */
static int create_shuffled(MPI_Datatype *type) {
    const int lengths[] = {3, 3};
    const int displacements[] = {3, 0};
    return PMPI_Type_indexed(2, lengths, displacements, MPI_INT, type);
}

/* Data on both sides of the address that is passed, and a lower bound below all data. */
static int create_negative(MPI_Datatype *type) {
    const int lengths[] = {2, 1, 3};
    const int displacements[] = {-4, -1, 2};
    MPI_Datatype indexed;
    COLL_TRY(PMPI_Type_indexed(3, lengths, displacements, MPI_INT, &indexed));
    return resize(indexed, -6, 13, type);
}

/* A lower bound above 0 and inside the data, so that an element begins before the bound. */
static int create_shifted(MPI_Datatype *type) {
    MPI_Datatype vector;
    COLL_TRY(PMPI_Type_vector(2, 3, 6, MPI_INT, &vector));
    return resize(vector, 3, 12, type);
}

/* Each element has numbers in the gaps of the next: right as a whole, but not divisible. */
static int create_interleaved(MPI_Datatype *type) {
    const int displacements[] = {0, 7, 2, 9, 4, 11};
    MPI_Datatype indexed;
    COLL_TRY(PMPI_Type_create_indexed_block(6, 1, displacements, MPI_INT, &indexed));
    return resize(indexed, 0, 6, type);
}

/* Each element lies below the one before. */
static inline int create_downward(MPI_Datatype *type) {
    MPI_Datatype contiguous;
    COLL_TRY(PMPI_Type_contiguous(6, MPI_INT, &contiguous));
    return resize(contiguous, 0, -7, type);
}

/* Members of the structures below: 24 bytes of data, in the same order in both. */
static int create_members(const MPI_Aint displacements[], MPI_Datatype *type) {
    const int lengths[] = {1, 1, 4, 2, 1};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT, MPI_FLOAT};
    return PMPI_Type_create_struct(5, lengths, displacements, types, type);
}

/* A structure as a compiler lays it out, with a gap inside and one at the end. */
static int create_struct(MPI_Datatype *type) {
    const MPI_Aint displacements[] = {0, 8, 16, 20, 24};
    MPI_Datatype members;
    COLL_TRY(create_members(displacements, &members));
    return resize(members, 0, 8, type);
}

/* The same members on both sides of the address, not in the order of their addresses. */
static int create_scattered(MPI_Datatype *type) {
    const MPI_Aint displacements[] = {24, -16, 0, -4, 12};
    MPI_Datatype members;
    COLL_TRY(create_members(displacements, &members));
    return resize(members, -4, 12, type);
}

static const struct layout int_layout = {"int", 6, create_int};
static const struct layout byte_layout = {"byte", 1, create_byte};
static const struct layout pair_layout = {"double and int", 2, create_pair};
static const struct layout contiguous_layout = {"contiguous", 1, create_contiguous};
static const struct layout vector_layout = {"vector with gaps", 1, create_vector};
static const struct layout permuted_layout = {"permuted with a gap", 1, create_permuted};
static const struct layout shuffled_layout = {"permuted without gap", 1, create_shuffled};
static const struct layout negative_layout = {"negative lower bound", 1, create_negative};
static const struct layout shifted_layout = {"positive lower bound", 1, create_shifted};
static const struct layout interleaved_layout = {"interleaved", 1, create_interleaved};
static const struct layout struct_layout = {"structure", 1, create_struct};
static const struct layout scattered_layout = {"scattered structure", 1, create_scattered};

/* Open MPI 4.1 receives elements that go downwards wrongly, or not at all. */
#ifdef OPEN_MPI
#define downward_layout interleaved_layout
#else
static const struct layout downward_layout = {"downward", 1, create_downward};
#endif

/* The two sides of a call; the counts follow from the elements per block. */
struct pair {
    const struct layout *send;
    const struct layout *recv;
};

static const struct pair pairs[] = {
    {&int_layout, &int_layout},
    {&vector_layout, &vector_layout},
    {&int_layout, &vector_layout},
    {&permuted_layout, &contiguous_layout},
    {&contiguous_layout, &shuffled_layout},
    {&negative_layout, &int_layout},
    {&shifted_layout, &negative_layout},
    {&byte_layout, &byte_layout},
    {&pair_layout, &pair_layout},
    {&struct_layout, &scattered_layout},
    {&interleaved_layout, &downward_layout},
};

enum { PAIRS = sizeof pairs / sizeof pairs[0] };

#endif
