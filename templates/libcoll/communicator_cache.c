/* Communicators that are known by their handles: their calls ask MPI nothing about them. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "coll.h"

/*
 * To ask MPI what hangs on a communicator takes longer than many a native call. So handles of
 * native communicators are kept here, the latest in each slot. A thread that frees a communicator
 * forgets it first. So the handle of a later one is never taken for it: whichever thread has that
 * handle got it after the other was forgotten.
 */
enum { SLOT_BITS = 6, LATEST_BITS = 3 };

static _Atomic(MPI_Comm) slots[1 << SLOT_BITS];

/* Fibonacci hashing (Knuth 1973, vol. 3, §6.4): handles may be addresses or small numbers. */
static size_t spread(MPI_Comm comm, int bits) {
    return (size_t)(((uint64_t)(uintptr_t)comm * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - bits));
}

static _Atomic(MPI_Comm) *slot_of(MPI_Comm comm) {
    return &slots[spread(comm, SLOT_BITS)];
}

int coll_cached_native(MPI_Comm comm) {
    return atomic_load_explicit(slot_of(comm), memory_order_relaxed) == comm;
}

void coll_cache_native(MPI_Comm comm) {
    atomic_store_explicit(slot_of(comm), comm, memory_order_relaxed);
}

/*
 * What is known of all others: each thread has the latest ones of its own, so that handle and data
 * belong together without a lock. They count as long as nothing has been forgotten since.
 */
static _Thread_local struct {
    MPI_Comm comm;
    unsigned forgotten;
    struct coll_comm *cc;
} latest[1 << LATEST_BITS];

static atomic_uint forgotten;

unsigned coll_forgotten(void) {
    return atomic_load_explicit(&forgotten, memory_order_acquire);
}

struct coll_comm *coll_cached(MPI_Comm comm) {
    const size_t slot = spread(comm, LATEST_BITS);
    const int known = latest[slot].comm == comm && latest[slot].forgotten == coll_forgotten();
    return known ? latest[slot].cc : NULL;
}

void coll_cache(MPI_Comm comm, struct coll_comm *cc) {
    const size_t slot = spread(comm, LATEST_BITS);
    latest[slot].comm = comm;
    latest[slot].forgotten = coll_forgotten();
    latest[slot].cc = cc;
}

void coll_forget(MPI_Comm comm) {
    MPI_Comm known = comm;
    atomic_fetch_add(&forgotten, 1);
    atomic_compare_exchange_strong(slot_of(comm), &known, MPI_COMM_NULL);
}

void coll_forget_all(void) {
    atomic_fetch_add(&forgotten, 1);
    for (size_t slot = 0; slot < sizeof slots / sizeof *slots; ++slot)
        atomic_store(&slots[slot], MPI_COMM_NULL);
}
