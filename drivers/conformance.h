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

/* The data of one side of a call on a rank: none, one rank's, or a block for each rank. */
enum case_side { CASE_NOTHING, CASE_ONE, CASE_ALL };

enum case_in_place { CASE_NEVER, CASE_EVERYWHERE, CASE_SEND_AT_ROOT, CASE_RECV_AT_ROOT };

/* The calls that a collective allows, in case_<collective>.c, for drivers of any collective. */
struct coll_case {
    enum case_side send, recv;
    enum case_in_place in_place;
    int rooted;
    int reduces;
    int uneven;   /* blocks differ in length: send_blocks and recv_blocks are counts and places */
    int of_whole; /* a call's size counts all blocks together, else one block */
    int (*entry)(const struct coll_call *call); /* the MPI_ function */
};

extern const struct coll_case *const coll_cases[COLL_COLLECTIVES]; /* cases.c */

/* Compare `routine`, or the MPI_ entry point if it is NULL, on `comm`. */
int conformance_check(enum coll_collective collective, const struct coll_routine *routine,
                      const struct coll_parameters *parameters, MPI_Comm comm,
                      enum conformance_level level, struct conformance_report *report);

#endif
