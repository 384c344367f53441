/* Datatypes: which are MPI's own, and which are plain bytes whatever they are made of. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "coll.h"

/* What a type is made of, as MPI tells. */
struct contents {
    int combiner;
    int large; /* made by a function for large counts */
    int integers, addresses, counts, datatypes;
    MPI_Count *numbers; /* integers, addresses, counts: mostly the arguments of the constructor */
    MPI_Datatype *types;
};

static int find_envelope(MPI_Datatype type, struct contents *contents) {
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, datatypes;
    COLL_TRY(PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &datatypes,
                                      &contents->combiner));
    contents->integers = (int)integers;
    contents->addresses = (int)addresses;
    contents->counts = (int)counts;
    contents->datatypes = (int)datatypes;
    contents->large = counts > 0;
    return MPI_SUCCESS;
#else
    contents->large = contents->counts = 0;
    return PMPI_Type_get_envelope(type, &contents->integers, &contents->addresses,
                                  &contents->datatypes, &contents->combiner);
#endif
}

/* The types that MPI_Type_create_f90_real and its like return are predefined as well. */
static int is_of_mpi(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

/* Whether `type` is one of MPI's own, so that its data is at the address that is given. */
int coll_is_predefined(MPI_Datatype type) {
    struct contents contents;
    return find_envelope(type, &contents) == MPI_SUCCESS && is_of_mpi(contents.combiner);
}

/* Ask MPI for the contents, into arrays of that many; the rest is theirs to put in order. */
static int ask_contents(MPI_Datatype type, const struct contents *contents, int *integers,
                        MPI_Aint *addresses, MPI_Count *counts) {
#if MPI_VERSION >= 4
    return PMPI_Type_get_contents_c(type, contents->integers, contents->addresses, contents->counts,
                                    contents->datatypes, integers, addresses, counts,
                                    contents->types);
#else
    (void)counts;
    return PMPI_Type_get_contents(type, contents->integers, contents->addresses,
                                  contents->datatypes, integers, addresses, contents->types);
#endif
}

/* All numbers in one array: `counts` are there already, after the others. */
static int read_contents(MPI_Datatype type, struct contents *contents) {
    const size_t few = (size_t)contents->integers, more = (size_t)contents->addresses;
    int *integers = malloc((few + 1) * sizeof *integers);
    MPI_Aint *addresses = malloc((more + 1) * sizeof *addresses);
    int error = MPI_ERR_NO_MEM;
    if (integers != NULL && addresses != NULL)
        error = ask_contents(type, contents, integers, addresses, contents->numbers + few + more);
    for (size_t i = 0; i < few && error == MPI_SUCCESS; ++i)
        contents->numbers[i] = integers[i];
    for (size_t i = 0; i < more && error == MPI_SUCCESS; ++i)
        contents->numbers[few + i] = addresses[i];
    free(integers);
    free(addresses);
    return error;
}

/* Free a datatype that MPI_Type_get_contents returned, unless it is predefined. */
static int release(MPI_Datatype type) {
    return coll_is_predefined(type) ? MPI_SUCCESS : PMPI_Type_free(&type);
}

/*
 * Elements of a type. They are `whole` if the data of each one is `size` bytes from `low` on, in
 * the order of the type map and without gaps; what has no data is whole. The next element is
 * `extent` bytes farther.
 */
struct element {
    int whole;
    MPI_Aint low, extent;
    MPI_Count size;
};

static const struct element nothing = {.whole = 1};

/* Put `count` elements, the first of them at address `at`, after what is in `all`. */
static void append(struct element *all, const struct element *one, MPI_Count count, MPI_Count at) {
    const MPI_Aint start = (MPI_Aint)at + one->low;
    if (count == 0 || one->size == 0)
        return;
    if (all->size == 0)
        all->low = start;
    all->whole = all->whole && one->whole && (count == 1 || one->extent == one->size) &&
                 start == all->low + all->size;
    all->size += count * one->size;
}

/* `count` blocks of so many elements, `stride` bytes from one to the next. */
static void append_vector(struct element *all, const struct element *one, MPI_Count count,
                          MPI_Count length, MPI_Count stride) {
    struct element block = nothing;
    append(&block, one, length, 0);
    block.extent = (MPI_Aint)stride;
    append(all, &block, count, 0);
}

/* Blocks at displacements in units of `unit` bytes; all of one length if `lengths` has but one. */
static void append_blocks(struct element *all, const struct element *one, MPI_Count count,
                          const MPI_Count *lengths, int one_length, const MPI_Count *displacements,
                          MPI_Count unit) {
    for (MPI_Count i = 0; i < count && all->whole; ++i)
        append(all, one, lengths[one_length ? 0 : i], displacements[i] * unit);
}

/*
 * Part of an array: in one piece where only its slowest dimension of more than one element is cut.
 * Arrays are counted from the fastest dimension on.
 */
static void append_subarray(struct element *all, const struct element *one,
                            const struct contents *contents) {
    const MPI_Count dimensions = contents->numbers[0];
    const MPI_Count *sizes = contents->numbers + (contents->large ? 2 : 1);
    const MPI_Count *parts = sizes + dimensions, *starts = parts + dimensions;
    const int of_c = contents->numbers[contents->large ? 1 : 1 + 3 * dimensions] == MPI_ORDER_C;
    MPI_Count elements = 1, first = 0, stride = 1;
    int cut = 0;
    for (MPI_Count i = 0; i < dimensions; ++i) {
        const MPI_Count d = of_c ? dimensions - 1 - i : i;
        all->whole = all->whole && (!cut || parts[d] == 1);
        cut = cut || parts[d] != sizes[d];
        elements *= parts[d];
        first += starts[d] * stride;
        stride *= sizes[d];
    }
    append(all, one, elements, first * one->extent);
}

static int find_element(MPI_Datatype type, struct element *element);

static int append_members(struct element *all, const struct contents *contents) {
    const MPI_Count count = contents->numbers[0];
    const MPI_Count *lengths = contents->numbers + 1, *displacements = lengths + count;
    for (MPI_Count i = 0; i < count && all->whole; ++i) {
        struct element one;
        COLL_TRY(find_element(contents->types[i], &one));
        append(all, &one, lengths[i], displacements[i]);
    }
    return MPI_SUCCESS;
}

/* The data of a type that is made of others; of combiners that are not known it is not whole. */
static int put_together(const struct contents *contents, struct element *all) {
    const MPI_Count *numbers = contents->numbers, *more = numbers + 2;
    struct element one;
    if (contents->combiner == MPI_COMBINER_STRUCT)
        return append_members(all, contents);
    COLL_TRY(find_element(contents->types[0], &one));
    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        append(all, &one, 1, 0);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        append(all, &one, numbers[0], 0);
        break;
    case MPI_COMBINER_VECTOR:
        append_vector(all, &one, numbers[0], numbers[1], more[0] * one.extent);
        break;
    case MPI_COMBINER_HVECTOR:
        append_vector(all, &one, numbers[0], numbers[1], more[0]);
        break;
    case MPI_COMBINER_INDEXED:
        append_blocks(all, &one, numbers[0], numbers + 1, 0, numbers + 1 + numbers[0], one.extent);
        break;
    case MPI_COMBINER_HINDEXED:
        append_blocks(all, &one, numbers[0], numbers + 1, 0, numbers + 1 + numbers[0], 1);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        append_blocks(all, &one, numbers[0], numbers + 1, 1, more, one.extent);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        append_blocks(all, &one, numbers[0], numbers + 1, 1, more, 1);
        break;
    case MPI_COMBINER_SUBARRAY:
        append_subarray(all, &one, contents);
        break;
    default:
        all->whole = 0;
    }
    return MPI_SUCCESS;
}

/* Look into a type that is made of others. */
static int look_inside(MPI_Datatype type, struct contents *contents, struct element *all) {
    const int numbers = contents->integers + contents->addresses + contents->counts;
    *all = nothing;
    contents->numbers = malloc(((size_t)numbers + 1) * sizeof *contents->numbers);
    contents->types = malloc(((size_t)contents->datatypes + 1) * sizeof *contents->types);
    int error = MPI_ERR_NO_MEM, read = 0;
    if (contents->numbers != NULL && contents->types != NULL)
        error = read_contents(type, contents);
    read = error == MPI_SUCCESS;
    if (read)
        error = put_together(contents, all);
    for (int i = 0; i < contents->datatypes && read; ++i) {
        const int freed = release(contents->types[i]);
        error = error == MPI_SUCCESS ? freed : error;
    }
    free(contents->numbers);
    free(contents->types);
    return error;
}

/*
 * What was found hangs on the type as an attribute, so that no call looks into it again: 1, or for
 * data that is whole twice where it begins. There is nothing to free, and duplicates have none.
 */
static int key = MPI_KEYVAL_INVALID;
static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;

static int find_key(int *found) {
    int error = MPI_SUCCESS;
    pthread_mutex_lock(&key_lock);
    if (key == MPI_KEYVAL_INVALID)
        error = PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    *found = key;
    pthread_mutex_unlock(&key_lock);
    return error;
}

void coll_types_finalize(void) {
    pthread_mutex_lock(&key_lock);
    if (key != MPI_KEYVAL_INVALID)
        PMPI_Type_free_keyval(&key);
    pthread_mutex_unlock(&key_lock);
}

void coll_types_restart(void) {
    pthread_mutex_lock(&key_lock);
    key = MPI_KEYVAL_INVALID;
    pthread_mutex_unlock(&key_lock);
}

/* Threads may use a type together, and MPI libraries need not set an attribute for several. */
static int set_once(MPI_Datatype type, int attribute, void *value) {
    int found;
    void *known;
    pthread_mutex_lock(&key_lock);
    int error = PMPI_Type_get_attr(type, attribute, &known, &found);
    if (error == MPI_SUCCESS && !found)
        error = PMPI_Type_set_attr(type, attribute, value);
    pthread_mutex_unlock(&key_lock);
    return error;
}

/* Find whether the data of a type that is made of others is whole, and where it begins. */
static int find_data(MPI_Datatype type, struct contents *contents, struct element *element) {
    int attribute, found;
    void *value;
    struct element all;
    COLL_TRY(find_key(&attribute));
    COLL_TRY(PMPI_Type_get_attr(type, attribute, &value, &found));
    if (!found) {
        COLL_TRY(look_inside(type, contents, &all));
        value = (void *)(all.whole ? (intptr_t)all.low * 2 : (intptr_t)1);
        COLL_TRY(set_once(type, attribute, value));
    }
    element->whole = (intptr_t)value % 2 == 0;
    element->low = element->whole ? (MPI_Aint)((intptr_t)value / 2) : 0;
    return MPI_SUCCESS;
}

static int find_element(MPI_Datatype type, struct element *element) {
    struct contents contents;
    MPI_Aint lower_bound, bytes;
    COLL_TRY(PMPI_Type_size_x(type, &element->size));
    COLL_TRY(PMPI_Type_get_extent(type, &lower_bound, &element->extent));
    COLL_TRY(find_envelope(type, &contents));
    if (!is_of_mpi(contents.combiner))
        return find_data(type, &contents, element);
    COLL_TRY(PMPI_Type_get_true_extent(type, &element->low, &bytes));
    element->whole = bytes == element->size;
    return MPI_SUCCESS;
}

/*
 * Whether `type` occupies its bytes without gaps and in the order of its type map, so that
 * count elements are count * size plain bytes. Size and extent alone do not tell: an indexed
 * type may permute its elements. What is not known to be dense is packed, which is always right.
 */
int coll_is_dense(MPI_Datatype type, int *dense) {
    MPI_Aint lower_bound, extent;
    MPI_Count size;
    struct contents contents;
    struct element element;
    COLL_TRY(PMPI_Type_get_extent(type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_size_x(type, &size));
    *dense = 0;
    if (lower_bound != 0 || extent != size)
        return MPI_SUCCESS;
    COLL_TRY(find_envelope(type, &contents));
    if (is_of_mpi(contents.combiner)) {
        *dense = 1;
        return MPI_SUCCESS;
    }
    COLL_TRY(find_data(type, &contents, &element));
    *dense = element.whole && element.low == 0;
    return MPI_SUCCESS;
}
