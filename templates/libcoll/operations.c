/* Which of MPI's operations are for which of its types. */
#include <stddef.h>

#include "dispatch.h"

/* The groups of predefined types of the MPI standard's chapter on reductions. */
enum group {
    INTEGERS = 1 << 0,
    REALS = 1 << 1,
    LOGICALS = 1 << 2,
    COMPLEXES = 1 << 3,
    BYTES = 1 << 4,
    PAIRS = 1 << 5,
};

/*
 * Those that programs use most come first. Types that only some MPI libraries have are left out,
 * and those of C++: MPICH 4.3 fails on messages of its complex numbers.
 */
static const struct {
    MPI_Datatype type;
    enum group group;
} types[] = {
    {MPI_DOUBLE, REALS},
    {MPI_INT, INTEGERS},
    {MPI_FLOAT, REALS},
    {MPI_LONG, INTEGERS},
    {MPI_DOUBLE_PRECISION, REALS},
    {MPI_INTEGER, INTEGERS},
    {MPI_REAL, REALS},
    {MPI_INT64_T, INTEGERS},
    {MPI_UINT64_T, INTEGERS},
    {MPI_INT32_T, INTEGERS},
    {MPI_UINT32_T, INTEGERS},
    {MPI_INT16_T, INTEGERS},
    {MPI_UINT16_T, INTEGERS},
    {MPI_INT8_T, INTEGERS},
    {MPI_UINT8_T, INTEGERS},
    {MPI_UNSIGNED, INTEGERS},
    {MPI_UNSIGNED_LONG, INTEGERS},
    {MPI_LONG_LONG, INTEGERS},
    {MPI_UNSIGNED_LONG_LONG, INTEGERS},
    {MPI_SHORT, INTEGERS},
    {MPI_UNSIGNED_SHORT, INTEGERS},
    {MPI_SIGNED_CHAR, INTEGERS},
    {MPI_UNSIGNED_CHAR, INTEGERS},
    {MPI_AINT, INTEGERS},
    {MPI_OFFSET, INTEGERS},
    {MPI_COUNT, INTEGERS},
    {MPI_LONG_DOUBLE, REALS},
#if defined(MPI_INTEGER4) && defined(MPI_INTEGER8) && defined(MPI_REAL4) && defined(MPI_REAL8)
    {MPI_INTEGER4, INTEGERS},
    {MPI_INTEGER8, INTEGERS},
    {MPI_REAL4, REALS},
    {MPI_REAL8, REALS},
#endif
    {MPI_C_DOUBLE_COMPLEX, COMPLEXES},
    {MPI_C_FLOAT_COMPLEX, COMPLEXES},
    {MPI_C_LONG_DOUBLE_COMPLEX, COMPLEXES},
    {MPI_C_COMPLEX, COMPLEXES},
    {MPI_COMPLEX, COMPLEXES},
    {MPI_DOUBLE_COMPLEX, COMPLEXES},
    {MPI_C_BOOL, LOGICALS},
    {MPI_LOGICAL, LOGICALS},
    {MPI_BYTE, BYTES},
    {MPI_2INT, PAIRS},
    {MPI_DOUBLE_INT, PAIRS},
    {MPI_FLOAT_INT, PAIRS},
    {MPI_LONG_INT, PAIRS},
    {MPI_SHORT_INT, PAIRS},
    {MPI_LONG_DOUBLE_INT, PAIRS},
    {MPI_2INTEGER, PAIRS},
    {MPI_2REAL, PAIRS},
    {MPI_2DOUBLE_PRECISION, PAIRS},
};

static const struct {
    MPI_Op op;
    int groups;
} operations[] = {
    {MPI_SUM, INTEGERS | REALS | COMPLEXES},
    {MPI_MAX, INTEGERS | REALS},
    {MPI_MIN, INTEGERS | REALS},
    {MPI_PROD, INTEGERS | REALS | COMPLEXES},
    {MPI_LAND, INTEGERS | LOGICALS},
    {MPI_LOR, INTEGERS | LOGICALS},
    {MPI_LXOR, INTEGERS | LOGICALS},
    {MPI_BAND, INTEGERS | BYTES},
    {MPI_BOR, INTEGERS | BYTES},
    {MPI_BXOR, INTEGERS | BYTES},
    {MPI_MAXLOC, PAIRS},
    {MPI_MINLOC, PAIRS},
    {MPI_REPLACE, 0},
    {MPI_NO_OP, 0},
#ifdef MPIX_EQUAL /* MPICH's: its result is one int, whatever it compares */
    {MPIX_EQUAL, 0},
#endif
};

static int group_of(MPI_Datatype type) {
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (type == types[i].type)
            return types[i].group;
    return 0;
}

/*
 * Whether the type, or none, and the operation, or none, are MPI's own and so cannot be freed. Some
 * of them are not known here, and what counts for nothing in a call may be anything: no for both.
 */
int coll_is_lasting(MPI_Datatype type, MPI_Op op) {
    const MPI_Datatype no_type = (MPI_Datatype)0;
    const MPI_Op no_op = (MPI_Op)0;
    int known = op == no_op;
    for (size_t i = 0; i < sizeof operations / sizeof *operations && !known; ++i)
        known = op == operations[i].op;
    return known && (type == no_type || type == MPI_CHAR || type == MPI_PACKED || group_of(type));
}

/*
 * Whether the operation is for elements of the type. Operations of the application are for any;
 * those of MPI for types of MPI only, and a pair that is not known here may be right: it is for the
 * MPI library. All ranks of a call have the same operation and type, and decide alike.
 */
int coll_operates_on(MPI_Op op, MPI_Datatype type) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i)
        if (op == operations[i].op)
            return (operations[i].groups & group_of(type)) != 0;
    return 1;
}
