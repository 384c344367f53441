/* A Fourier transform of one line, for the programs of this folder. */
#ifndef LINE_TRANSFORM_H
#define LINE_TRANSFORM_H

#include <complex.h>
#include <math.h>

/* In place, of a power of two numbers; sign -1 is forth, 1 is back without the division. */
static inline void transform(double complex *x, int count, int sign) {
    for (int i = 1, j = 0; i < count; ++i) {
        int bit = count >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            const double complex kept = x[i];
            x[i] = x[j];
            x[j] = kept;
        }
    }
    for (int length = 2; length <= count; length <<= 1) {
        const double angle = sign * 2 * acos(-1) / length;
        const double complex turn = cos(angle) + I * sin(angle);
        for (int first = 0; first < count; first += length) {
            double complex factor = 1;
            for (int k = first; k < first + length / 2; ++k) {
                const double complex odd = factor * x[k + length / 2];
                x[k + length / 2] = x[k] - odd;
                x[k] += odd;
                factor *= turn;
            }
        }
    }
}

#endif
