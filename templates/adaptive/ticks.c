/* How long a tick is: found from the clock of the system, over the time since the library began. */
#include "ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int coll_counter_is_steady;

static uint64_t first_tick;
static double first_second;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Intel's and AMD's manuals: CPUID 80000007h, bit 8 of EDX, invariant TSC. */
static int is_steady(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#else
    return 0;
#endif
}

/* Before any call is measured. */
void coll_start_ticks(void) {
    coll_counter_is_steady = is_steady();
    first_second = seconds();
    first_tick = coll_ticks();
}

double coll_seconds_per_tick(void) {
    const uint64_t ticks = coll_ticks() - first_tick;
    if (!coll_counter_is_steady)
        return 1e-9;
    return ticks == 0 ? 0 : (seconds() - first_second) / (double)ticks;
}
