/* Alltoalls in steps: the pair and the ring algorithm, and what keeps their steps apart. */
#include "steps.h"

/* How many steps the pair algorithm takes for p ranks. */
static int pair_steps(int p) {
    return p % 2 == 0 ? p - 1 : p;
}

/*
 * The partner of a rank in a step from 1 on. A power of two of ranks pair up by the bits of the
 * step, as Faraj has it; other numbers by the 1-factors of the complete graph (Sanders and Träff
 * 2002): ranks whose sum is the step modulo n, the largest odd number up to p. A rank that would
 * meet itself meets rank n, or nobody if p is odd.
 */
static int pair_partner(int rank, int step, int p) {
    const int n = pair_steps(p);
    if ((p & (p - 1)) == 0)
        return rank ^ step;
    if (rank == n)
        return (int)((long)step * (p / 2) % n);
    const int partner = (step + n - rank) % n;
    return partner == rank && n < p ? n : partner;
}

/* Whether one of `barriers`, evenly spread between the steps 1 … steps, comes before a step. */
static bool barrier_is_due(int step, int steps, int barriers) {
    const long parts = barriers < steps - 1 ? barriers + 1 : steps;
    return step > 1 && (step - 1) * parts / steps > (step - 2) * parts / steps;
}

static int take_step(const struct coll_call *call, const struct coll_comm *cc,
                     const struct between *between, int step, int steps, int to, int from) {
    if (barrier_is_due(step, steps, between->barriers))
        COLL_TRY(PMPI_Barrier(cc->comm));
    if (to == cc->rank) /* p is odd: no rank is left to meet */
        return MPI_SUCCESS;
    if (between->tokens && step > 1)
        COLL_TRY(coll_exchange_tokens(cc, coll_sender(call, from), coll_receiver(call, to)));
    return coll_sendrecv(call, cc, to, from);
}

int coll_exchange_in_pairs(const struct coll_call *call, const struct coll_comm *cc,
                           struct between between) {
    const int steps = pair_steps(cc->size);
    for (int step = 1; step <= steps; ++step) {
        const int partner = pair_partner(cc->rank, step, cc->size);
        COLL_TRY(take_step(call, cc, &between, step, steps, partner, partner));
    }
    return MPI_SUCCESS;
}

int coll_exchange_around(const struct coll_call *call, const struct coll_comm *cc,
                         struct between between) {
    const int p = cc->size;
    for (int step = 1; step < p; ++step)
        COLL_TRY(take_step(call, cc, &between, step, p - 1, (cc->rank + step) % p,
                           (cc->rank - step + p) % p));
    return MPI_SUCCESS;
}
