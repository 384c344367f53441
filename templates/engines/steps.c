/* The steps of the pair algorithm, and where barriers go between steps. */
#include "steps.h"

int coll_pair_steps(int p) {
    return p % 2 == 0 ? p - 1 : p;
}

/*
 * A power of two of ranks pair up by the bits of the step, as Faraj has it; other numbers by the
 * 1-factors of the complete graph (Sanders and Träff 2002): ranks whose sum is the step modulo n,
 * the largest odd number up to p. A rank that would meet itself meets rank n, or nobody if p is
 * odd.
 */
int coll_pair_partner(int rank, int step, int p) {
    const int n = coll_pair_steps(p);
    if ((p & (p - 1)) == 0)
        return rank ^ step;
    if (rank == n)
        return (int)((long)step * (p / 2) % n);
    const int partner = (step + n - rank) % n;
    return partner == rank && n < p ? n : partner;
}

bool coll_barrier_is_due(int step, int steps, int barriers) {
    const long parts = barriers < steps - 1 ? barriers + 1 : steps;
    return step > 1 && (step - 1) * parts / steps > (step - 2) * parts / steps;
}
