/* Numbers of all types that MPI reduces, so small that results are exact in any order. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <float.h>
#include <stdint.h>
#include <string.h>

/* The kind of numbers that an operation gets. */
enum values {
    VALUES_ANY,     /* of all bits of a byte */
    VALUES_SMALL,   /* sums are exact; sums of bytes, on up to SUMMED_BYTES ranks */
    VALUES_FACTORS, /* products are exact, and floating-point ones are not 0 */
    VALUES_TRUTHS,  /* sometimes 0 */
    VALUES_TIED,    /* few distinct values, so that some are equal */
};

/* A number in memory: one value, the two of a complex number, or one with an index after it. */
struct number {
    int real; /* floating point, else an integer */
    int width;
    int parts;    /* 2 for a complex number, or for a value with an index of its type */
    int index_at; /* offset of the index, an int; 0: none */
};

static const struct number byte_number = {0, 1, 1, 0};
static const struct number int_number = {0, sizeof(int), 1, 0};
static const struct number double_number = {1, sizeof(double), 1, 0};
static const struct number double_int_number = {1, sizeof(double), 1, sizeof(double)};

/* Open MPI's sums of bytes stop at the least and greatest number where they would overflow. */
enum { SUMMED_BYTES = 42 };

/* The most ranks with complex factors other than 1, which keeps type float exact. */
enum { COMPLEX_FACTORS = 16 };

/* clang-format off */
#define WRITE_AS(type, value) do { type number_ = (type)(value); memcpy(to, &number_, sizeof number_); } while (0)
/* clang-format on */

static inline void write_value(const struct number *number, char *to, double value) {
    if (number->real && number->width == sizeof(float))
        WRITE_AS(float, value);
    else if (number->real && number->width == sizeof(double))
        WRITE_AS(double, value);
    else if (number->real)
        WRITE_AS(long double, value);
    else if (number->width == 1)
        WRITE_AS(int8_t, (int)value);
    else if (number->width == 2)
        WRITE_AS(int16_t, value);
    else if (number->width == 4)
        WRITE_AS(int32_t, value);
    else
        WRITE_AS(int64_t, value);
}

static inline double value_of(const struct number *number, enum values values, unsigned random) {
    static const double factors[] = {1, 2, 0.5, -1};
    switch (values) {
    case VALUES_FACTORS:
        return number->real ? factors[random % 4] : 1 + random % 3;
    case VALUES_TRUTHS:
        return random % 8 != 0;
    case VALUES_TIED:
        return random % 10;
    case VALUES_SMALL:
        return random % (number->width == 1 ? INT8_MAX / SUMMED_BYTES + 1 : 1000);
    default:
        return random % 1000;
    }
}

/* A complex factor is 1 or 2 + i. No product of these has a part that is 0, whose sign would
 * depend on the order, unless all factors are 1. */
static inline void write_complex(const struct number *number, enum values values, char *to,
                                 unsigned random, int rank) {
    const int one = random % 2 == 0 || rank >= COMPLEX_FACTORS;
    const int factor = values == VALUES_FACTORS;
    write_value(number, to, factor ? (one ? 1 : 2) : random % 1000);
    write_value(number, to + number->width, factor ? !one : random % 10);
}

/* The number of a rank; it differs from the others' in random bits only. */
static inline void write_number(const struct number *number, enum values values, char *to,
                                unsigned random, int rank) {
    const int index = (int)(random / 10 % 100);
    if (number->parts == 2 && values != VALUES_TIED) {
        write_complex(number, values, to, random, rank);
        return;
    }
    write_value(number, to, value_of(number, values, random));
    if (number->parts == 2)
        write_value(number, to + number->width, index);
    if (number->index_at != 0)
        memcpy(to + number->index_at, &index, sizeof index);
}

/*
 * A long double of x86 has 10 bytes of data and 6 of padding, which results may copy. Clear the
 * padding, as the data lies at multiples of 16 bytes.
 */
static inline void blank_padding(const struct number *number, char *data, size_t bytes) {
    enum { DATA = 10 };
    if (!number->real || number->width != sizeof(long double) || LDBL_MANT_DIG != 64)
        return;
    for (size_t at = 0; at + sizeof(long double) <= bytes; at += sizeof(long double))
        memset(data + at + DATA, 0, sizeof(long double) - DATA);
}

#endif
