/* Compares routines with the MPI library's own, byte by byte. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "coll.h"

/* How much to try: a few telling calls, or all combinations. */
enum conformance_level { CONFORMANCE_QUICK, CONFORMANCE_FULL };

/* One wrong case, in words; empty if there is none. The same on all ranks. */
struct conformance_report {
    int cases;
    int wrong;
    char first_wrong[256];
};

/* Compare `routine`, or the MPI_ entry point if it is NULL, on `comm`. */
int conformance_check(enum coll_collective collective, const struct coll_routine *routine,
                      const struct coll_parameters *parameters, MPI_Comm comm,
                      enum conformance_level level, struct conformance_report *report);

/*
 * Compare a routine whose quick checks on `comm` found nothing wrong so many times, now perhaps
 * with other values of its parameters: the first time with all trials of a quick check, then with
 * the long messages and a quarter of the others, another quarter each time.
 */
int conformance_check_again(enum coll_collective collective, const struct coll_routine *routine,
                            const struct coll_parameters *parameters, MPI_Comm comm, int times,
                            struct conformance_report *report);

/* From now on ranks sleep before calls, up to so many microseconds: they arrive apart. */
void conformance_delay(int microseconds);

#endif
