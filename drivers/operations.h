/* All predefined operations on all types that they accept: MPI 4.0, §6.9.2 and §6.9.4. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include <stddef.h>
#include <stdio.h>

#include "operands.h"

enum group {
    C_INTEGER = 1,
    FORTRAN_INTEGER = 2,
    FLOATING_POINT = 4,
    LOGICAL = 8,
    COMPLEX = 16,
    BYTE = 32,
    MULTI_LANGUAGE = 64,
    PAIR = 128,
    ARITHMETIC = C_INTEGER | FORTRAN_INTEGER | FLOATING_POINT | MULTI_LANGUAGE,
    BITS = C_INTEGER | FORTRAN_INTEGER | BYTE | MULTI_LANGUAGE,
};

static const struct operation {
    const char *name;
    MPI_Op op;
    unsigned groups; /* of types */
    enum values values;
} operations[] = {
    {"max", MPI_MAX, ARITHMETIC, VALUES_ANY},
    {"min", MPI_MIN, ARITHMETIC, VALUES_ANY},
    {"sum", MPI_SUM, ARITHMETIC | COMPLEX, VALUES_SMALL},
    {"prod", MPI_PROD, ARITHMETIC | COMPLEX, VALUES_FACTORS},
    {"land", MPI_LAND, C_INTEGER | LOGICAL, VALUES_TRUTHS},
    {"lor", MPI_LOR, C_INTEGER | LOGICAL, VALUES_TRUTHS},
    {"lxor", MPI_LXOR, C_INTEGER | LOGICAL, VALUES_TRUTHS},
    {"band", MPI_BAND, BITS, VALUES_ANY},
    {"bor", MPI_BOR, BITS, VALUES_ANY},
    {"bxor", MPI_BXOR, BITS, VALUES_ANY},
    {"minloc", MPI_MINLOC, PAIR, VALUES_TIED},
    {"maxloc", MPI_MAXLOC, PAIR, VALUES_TIED},
};

/* clang-format off */
#define INTEGER_OF(type) {0, sizeof(type), 1, 0}
#define REAL_OF(type) {1, sizeof(type), 1, 0}
#define COMPLEX_OF(type) {1, sizeof(type), 2, 0} /* and an index that is a real number, too */
#define PAIR_OF(real, type) {real, sizeof(type), 1, offsetof(struct { type value; int index; }, index)}

/* A library without Fortran lacks its types, or has them with another width: they are left out. */
static const struct element {
    const char *name;
    MPI_Datatype type;
    enum group group;
    struct number number;
} elements[] = {
    {"signed char", MPI_SIGNED_CHAR, C_INTEGER, INTEGER_OF(char)},
    {"short", MPI_SHORT, C_INTEGER, INTEGER_OF(short)},
    {"int", MPI_INT, C_INTEGER, INTEGER_OF(int)},
    {"long", MPI_LONG, C_INTEGER, INTEGER_OF(long)},
    {"long long", MPI_LONG_LONG, C_INTEGER, INTEGER_OF(long long)},
    {"unsigned char", MPI_UNSIGNED_CHAR, C_INTEGER, INTEGER_OF(char)},
    {"unsigned short", MPI_UNSIGNED_SHORT, C_INTEGER, INTEGER_OF(short)},
    {"unsigned", MPI_UNSIGNED, C_INTEGER, INTEGER_OF(int)},
    {"unsigned long", MPI_UNSIGNED_LONG, C_INTEGER, INTEGER_OF(long)},
    {"unsigned long long", MPI_UNSIGNED_LONG_LONG, C_INTEGER, INTEGER_OF(long long)},
    {"int8", MPI_INT8_T, C_INTEGER, INTEGER_OF(int8_t)},
    {"int16", MPI_INT16_T, C_INTEGER, INTEGER_OF(int16_t)},
    {"int32", MPI_INT32_T, C_INTEGER, INTEGER_OF(int32_t)},
    {"int64", MPI_INT64_T, C_INTEGER, INTEGER_OF(int64_t)},
    {"uint8", MPI_UINT8_T, C_INTEGER, INTEGER_OF(uint8_t)},
    {"uint16", MPI_UINT16_T, C_INTEGER, INTEGER_OF(uint16_t)},
    {"uint32", MPI_UINT32_T, C_INTEGER, INTEGER_OF(uint32_t)},
    {"uint64", MPI_UINT64_T, C_INTEGER, INTEGER_OF(uint64_t)},
    {"INTEGER", MPI_INTEGER, FORTRAN_INTEGER, INTEGER_OF(int)},
#if defined(MPI_INTEGER4) && defined(MPI_INTEGER8) && defined(MPI_REAL4) && defined(MPI_REAL8)
    {"INTEGER*4", MPI_INTEGER4, FORTRAN_INTEGER, INTEGER_OF(int32_t)},
    {"INTEGER*8", MPI_INTEGER8, FORTRAN_INTEGER, INTEGER_OF(int64_t)},
    {"REAL*4", MPI_REAL4, FLOATING_POINT, REAL_OF(float)},
    {"REAL*8", MPI_REAL8, FLOATING_POINT, REAL_OF(double)},
#endif
    {"float", MPI_FLOAT, FLOATING_POINT, REAL_OF(float)},
    {"double", MPI_DOUBLE, FLOATING_POINT, REAL_OF(double)},
    {"long double", MPI_LONG_DOUBLE, FLOATING_POINT, REAL_OF(long double)},
    {"REAL", MPI_REAL, FLOATING_POINT, REAL_OF(float)},
    {"DOUBLE PRECISION", MPI_DOUBLE_PRECISION, FLOATING_POINT, REAL_OF(double)},
    {"bool", MPI_C_BOOL, LOGICAL, INTEGER_OF(_Bool)},
    {"C++ bool", MPI_CXX_BOOL, LOGICAL, INTEGER_OF(_Bool)},
    {"LOGICAL", MPI_LOGICAL, LOGICAL, INTEGER_OF(int)},
    {"float complex", MPI_C_FLOAT_COMPLEX, COMPLEX, COMPLEX_OF(float)},
    {"double complex", MPI_C_DOUBLE_COMPLEX, COMPLEX, COMPLEX_OF(double)},
    {"long double complex", MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, COMPLEX_OF(long double)},
    {"COMPLEX", MPI_COMPLEX, COMPLEX, COMPLEX_OF(float)},
    {"DOUBLE COMPLEX", MPI_DOUBLE_COMPLEX, COMPLEX, COMPLEX_OF(double)},
    {"byte", MPI_BYTE, BYTE, INTEGER_OF(char)},
    {"address", MPI_AINT, MULTI_LANGUAGE, INTEGER_OF(MPI_Aint)},
    {"offset", MPI_OFFSET, MULTI_LANGUAGE, INTEGER_OF(MPI_Offset)},
    {"count", MPI_COUNT, MULTI_LANGUAGE, INTEGER_OF(MPI_Count)},
    {"float and int", MPI_FLOAT_INT, PAIR, PAIR_OF(1, float)},
    {"double and int", MPI_DOUBLE_INT, PAIR, PAIR_OF(1, double)},
    {"long double and int", MPI_LONG_DOUBLE_INT, PAIR, PAIR_OF(1, long double)},
    {"short and int", MPI_SHORT_INT, PAIR, PAIR_OF(0, short)},
    {"long and int", MPI_LONG_INT, PAIR, PAIR_OF(0, long)},
    {"two int", MPI_2INT, PAIR, PAIR_OF(0, int)},
    {"two INTEGER", MPI_2INTEGER, PAIR, PAIR_OF(0, int)},
    {"two REAL", MPI_2REAL, PAIR, COMPLEX_OF(float)},
    {"two DOUBLE PRECISION", MPI_2DOUBLE_PRECISION, PAIR, COMPLEX_OF(double)},
};
/* clang-format on */

enum {
    OPERATIONS = sizeof operations / sizeof operations[0],
    ELEMENTS = sizeof elements / sizeof elements[0],
    NAME = 40,
};

static struct operand predefined[OPERATIONS * ELEMENTS];
static char predefined_names[OPERATIONS * ELEMENTS][NAME];

static inline int exists(const struct element *element) {
    const struct number *number = &element->number;
    const int wanted = number->width * number->parts + (number->index_at ? (int)sizeof(int) : 0);
    int size;
    return element->type != MPI_DATATYPE_NULL &&
           PMPI_Type_size(element->type, &size) == MPI_SUCCESS && size == wanted;
}

static inline void add_predefined(const struct operation *operation, const struct element *element,
                                  int at) {
    const int bytes = element->number.width * element->number.parts;
    snprintf(predefined_names[at], NAME, "%s %s", element->name, operation->name);
    predefined[at] = (struct operand){.name = predefined_names[at],
                                      .type = element->type,
                                      .per_block = bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1,
                                      .number = &element->number,
                                      .values = operation->values,
                                      .op = operation->op};
}

/* Fill predefined[] with all that this MPI library has, once; return how many there are. */
static inline int list_predefined(void) {
    static int count;
    if (count > 0)
        return count;
    for (int o = 0; o < OPERATIONS; ++o)
        for (int e = 0; e < ELEMENTS; ++e)
            if ((operations[o].groups & elements[e].group) && exists(&elements[e]))
                add_predefined(&operations[o], &elements[e], count++);
    return count;
}

#endif
