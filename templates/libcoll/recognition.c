/*
 * Which pattern a call has, or which class.
 *
 * Of an allgatherv all ranks know all counts, and so the class. Of an alltoallv a rank knows its
 * own counts only, so the ranks ask each other.
 *
 * Each rank finds the patterns that its own row and column fit; a bitwise and over all ranks leaves
 * those that fit everywhere. If there is none, the class serves: the bytes and the largest block of
 * all ranks are in the same message. To do that in every call would cost as much as a short call.
 * So the ranks do it now and then, and trust the answer until the next time. When they do it
 * follows from how many calls there were on the communicator, and what serves a call follows from
 * the latest answer: both are alike on all ranks, since they all make the same calls on a
 * communicator, in the same order. Whatever serves is right for any counts.
 *
 * Programs repeat several calls in turn. So call n is at place n mod PLACES, and each place has its
 * own answer: calls that repeat after 1, 2, 3, 4, 6 or 12 are told apart. The ranks ask in each of
 * the first LEARNED calls. Where these answers repeat after another number of calls, such as 5 or
 * 7, there are as many places from then on: the answers are alike on all ranks, and so is the
 * number. When a later answer differs from the one that was trusted, the program may have begun
 * another cycle, so the ranks learn the number anew. They wait longer before each next time, so a
 * program whose counts never repeat does not pay for this often.
 */
#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "dispatch.h"

/* The ranks ask at the 1st, 2nd, 4th, 8th … call of a place, then at every OFTEN-th. */
enum { PLACES = 12, LEARNED = 2 * PLACES, OFTEN = 64, ENTRIES_MOST = 64 };

/* Before the ranks learn again, there are this many times as many calls as before the last time. */
enum { LONGER = 4 };

/* Bytes of a row and of a column may differ from a pattern's by this part of both. */
static const double threshold = 0.1;

/* Sizes next to a range count to it, up to this factor: ranks see the mean block differently. */
static const double reach = 1.5;

struct places {
    unsigned long calls;          /* since the ranks began to learn */
    unsigned long wait;           /* calls before they may learn again */
    int surprised;                /* a later answer was another one than that of its place */
    int period;                   /* how many places are used; 0 before it is learned */
    unsigned char agreed[PLACES]; /* 1 + number of the entry, or 0 */
    unsigned char first[LEARNED]; /* the first answers, likewise */
};

static const char owner; /* of the places: its address */

static int is_due(unsigned long visit) {
    return visit % OFTEN == 0 || (visit < OFTEN && (visit & (visit - 1)) == 0);
}

/* What a rank has for, and gets from, the rank at a position, in bytes. */
struct own {
    double out, in;
};

/* Of one element; in place, a rank sends as much as it gets. */
static int find_sizes(const struct coll_call *call, struct own *one) {
    MPI_Count out, in;
    COLL_TRY(PMPI_Type_size_x(call->recv_type, &in));
    out = in;
    if (call->sendbuf != MPI_IN_PLACE)
        COLL_TRY(PMPI_Type_size_x(call->send_type, &out));
    *one = (struct own){(double)out, (double)in};
    return MPI_SUCCESS;
}

static struct own own_bytes(const struct coll_call *call, const struct coll_comm *cc,
                            struct own one, int position) {
    const int rank = cc->rank_of[position];
    const MPI_Count in = coll_recv_count(call, rank);
    const MPI_Count out = call->sendbuf == MPI_IN_PLACE ? in : coll_send_count(call, rank);
    return (struct own){one.out * (double)out, one.in * (double)in};
}

/* The same of a pattern. */
static struct own bytes_of(const int *bytes, const struct coll_comm *cc, int position) {
    const int mine = cc->position_of[cc->rank];
    return (struct own){bytes[mine * cc->size + position], bytes[position * cc->size + mine]};
}

/* Whether a rank's own counts fit an entry: the shape of its row and column, and their size. */
static int fits(const struct coll_pattern_entry *entry, const struct coll_call *call,
                const struct coll_comm *cc, struct own one) {
    double own_all = 0, all = 0, apart = 0;
    for (int position = 0; position < cc->size; ++position) {
        const struct own wanted = bytes_of(entry->bytes, cc, position);
        const struct own own = own_bytes(call, cc, one, position);
        if (cc->rank_of[position] == cc->rank)
            continue;
        own_all += own.out + own.in;
        all += wanted.out + wanted.in;
    }
    if (own_all <= 0 || all <= 0)
        return own_all <= 0 && all <= 0;
    const double scale = own_all / all, mean = scale * entry->mean;
    for (int position = 0; position < cc->size; ++position) {
        const struct own wanted = bytes_of(entry->bytes, cc, position);
        const struct own own = own_bytes(call, cc, one, position);
        if (cc->rank_of[position] != cc->rank)
            apart += fabs(own.out - scale * wanted.out) + fabs(own.in - scale * wanted.in);
    }
    return apart <= threshold * 2 * own_all && mean * reach >= entry->first &&
           mean <= reach * entry->last;
}

/* The patterns that a rank's own counts fit, a bit for each. */
static uint64_t find_fitting(const struct coll_call *call, const struct coll_comm *cc,
                             struct own one) {
    uint64_t fitting = 0;
    for (int i = 0; i < coll_pattern_count && i < ENTRIES_MOST; ++i) {
        const struct coll_pattern_entry *entry = &coll_pattern_entries[i];
        if (entry->collective == call->collective && entry->group == cc->group &&
            entry->bytes != NULL)
            fitting |= (uint64_t)fits(entry, call, cc, one) << i;
    }
    return fitting;
}

/* As many as there can be, of sizes that no type should have. */
static uint64_t whole(double bytes) {
    return bytes <= 0 ? 0 : bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX;
}

/* All bytes that a rank has for others, and its largest block of them. */
static void find_sent(const struct coll_call *call, const struct coll_comm *cc, struct own one,
                      struct coll_counts_told *told) {
    double all = 0, largest = 0;
    for (int position = 0; position < cc->size; ++position) {
        const struct own own = own_bytes(call, cc, one, position);
        if (cc->rank_of[position] == cc->rank)
            continue;
        all += own.out;
        largest = own.out > largest ? own.out : largest;
    }
    told->bytes = whole(all);
    told->largest = whole(largest);
}

/* The entry that serves by what all ranks told: the first pattern that fits, else the class. */
static const struct coll_pattern_entry *find_entry(const struct coll_counts_told *told,
                                                   enum coll_collective collective,
                                                   const struct coll_comm *cc) {
    const uint64_t blocks = (uint64_t)cc->size * (uint64_t)(cc->size - 1);
    for (int i = 0; i < ENTRIES_MOST; ++i)
        if (told->fitting >> i & 1)
            return &coll_pattern_entries[i];
    if (told->bytes == 0 || blocks == 0)
        return NULL;
    const uint64_t mean = told->bytes / blocks;
    return coll_find_class(
        collective, cc->group,
        coll_largest_over_mean((double)told->largest, (double)told->bytes, (double)blocks),
        mean < INT_MAX ? (MPI_Aint)mean : INT_MAX);
}

/* Ask all ranks; the entry that serves, 1 + its number, or 0. */
static int ask(const struct coll_call *call, const struct coll_comm *cc, unsigned char *agreed) {
    struct own one;
    COLL_TRY(find_sizes(call, &one));
    struct coll_counts_told told = {.fitting = find_fitting(call, cc, one)};
    find_sent(call, cc, one, &told);
    COLL_TRY(coll_agree_on_counts(cc, &told));
    const struct coll_pattern_entry *entry = find_entry(&told, call->collective, cc);
    *agreed = (unsigned char)(entry == NULL ? 0 : entry - coll_pattern_entries + 1);
    return MPI_SUCCESS;
}

/* After how many calls the first answers repeat; PLACES if that is a multiple of it. */
static int period_of(const unsigned char *first) {
    for (int period = 1; period < PLACES; ++period) {
        int i = period;
        while (i < LEARNED && first[i] == first[i - period])
            ++i;
        if (i == LEARNED)
            return PLACES % period == 0 ? PLACES : period;
    }
    return PLACES;
}

/* After the first LEARNED calls: use as many places as the period has. */
static void learn(struct places *places) {
    places->period = period_of(places->first);
    for (int n = 0; n < LEARNED; ++n)
        places->agreed[n % places->period] = places->first[n];
}

/* Begin to learn once more. */
static void learn_anew(struct places *places) {
    *places = (struct places){.wait = LONGER * (places->wait + LEARNED)};
}

int coll_has_patterns(enum coll_collective collective, int group) {
    for (int i = 0; i < coll_pattern_count; ++i)
        if (coll_pattern_entries[i].collective == collective &&
            coll_pattern_entries[i].group == group)
            return 1;
    return 0;
}

int coll_recognise(const struct coll_call *call, struct coll_comm *cc,
                   const struct coll_pattern_entry **entry) {
    *entry = NULL;
    if (call->collective != COLL_ALLTOALLV)
        return coll_find_known_class(call, cc, entry);
    COLL_TRY(coll_comm_private(call->comm, cc));
    if (cc->kind == COLL_KIND_NATIVE)
        return MPI_SUCCESS;
    void *kept;
    COLL_TRY(coll_comm_agreed_state(cc, &owner, sizeof(struct places), &kept));
    struct places *places = kept;
    if (places == NULL) /* on all ranks: calls have no pattern */
        return MPI_SUCCESS;
    if (places->surprised && places->calls > places->wait)
        learn_anew(places);
    if (places->calls == LEARNED)
        learn(places);
    const unsigned long n = places->calls++;
    const unsigned long period = (unsigned long)(places->period > 0 ? places->period : PLACES);
    unsigned char *agreed = &places->agreed[n % period];
    if (is_due(n / period + 1)) {
        const unsigned char trusted = *agreed;
        COLL_TRY(ask(call, cc, agreed));
        places->surprised |= n >= LEARNED && *agreed != trusted;
    }
    if (n < LEARNED)
        places->first[n] = *agreed;
    if (*agreed > 0)
        *entry = &coll_pattern_entries[*agreed - 1];
    return MPI_SUCCESS;
}
