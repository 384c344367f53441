/* The computation of Faraj 2006, Fig. 4.3 (c). */
#include "timing.h"

void timing_compute(long bound) {
    static volatile double a[1002], b[1002];
    for (long j = 0; j < bound; ++j)
        for (int k = 1; k <= 1000; ++k)
            a[k] = b[k + 1] + a[k - 1];
}
