/* What formulas of sizes and of memory are made of. */
#ifndef FORMULA_H
#define FORMULA_H

#include "coll.h"

/* The formulas of front matters, in doubles: no product of sizes overflows them. */
static inline double larger(double a, double b) {
    return a > b ? a : b;
}

static inline double smaller(double a, double b) {
    return a < b ? a : b;
}

static inline double quotient(double a, double b) {
    return a / b;
}

/* Every double beyond this is whole. */
#define WHOLE_FROM ((double)(1LL << 53))

static inline double whole_quotient(double a, double b) {
    return a / b < WHOLE_FROM ? (double)(long long)(a / b) : a / b;
}

/* The most ranks on one host; where hosts are not known, all. */
static inline double most_on_a_host(const struct coll_comm *cc) {
    int most = cc->first_place == NULL ? cc->size : 1;
    for (int host = 0; cc->first_place != NULL && host < cc->hosts; ++host) {
        const int here = cc->first_place[host + 1] - cc->first_place[host];
        most = here > most ? here : most;
    }
    return most;
}

/* Of a reduction, where it is the same on all ranks. */
static inline double bytes_of_element(const struct coll_call *call) {
    MPI_Count size;
    return PMPI_Type_size_x(call->recv_type, &size) == MPI_SUCCESS ? (double)size : 0;
}

#endif
