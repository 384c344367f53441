/* What is kept of a call. */
#include "recorder.h"

#include "handles.h"

atomic_int recorder_active;
_Thread_local const void *recorder_fortran_site;

/* Calls that a library of MPI makes within a call are none of the program. */
static _Thread_local int depth;

/* How many blocks a rank has: for the others, from them, or of what they add up. */
static int blocks_of(const struct recorder_communicator *one, unsigned flags) {
    if (flags & RECORDER_OF_NEIGHBOURS)
        return 0; /* the topology would have to be asked */
    const int of_others = one->remote > 0 && !(flags & RECORDER_OF_OWN_GROUP);
    return of_others ? one->remote : one->size;
}

static int64_t size_of(MPI_Datatype type) {
    MPI_Count size = 0;
    if (coll_is_type(type))
        PMPI_Type_size_x(type, &size);
    return size;
}

/* What an element of one side is; of datatypes that differ by block, nothing is kept. */
struct element {
    int64_t bytes, extent;
};

static struct element element_of(const struct recorder_side *side) {
    MPI_Aint lower, extent = 0;
    if (side->types != NULL || !coll_is_type(side->type))
        return (struct element){0};
    PMPI_Type_get_extent(side->type, &lower, &extent);
    return (struct element){size_of(side->type), extent};
}

static int64_t count_of(const struct recorder_side *side, int block) {
    return side->counts != NULL ? side->counts[block] : (int64_t)side->large_counts[block];
}

/* The counts of the blocks, unless they are those that were kept at this site before. */
static uint32_t keep_counts(const struct recorder_side *side, int blocks,
                            _Atomic uint32_t *kept_before) {
    const uint32_t before = atomic_load_explicit(kept_before, memory_order_relaxed);
    const int64_t *old = before == 0 ? NULL : recorder_entry(RECORDER_COUNTS, before);
    int same = old != NULL && old[0] == blocks;
    for (int i = 0; same && i < blocks; ++i)
        same = old[i + 1] == count_of(side, i);
    if (same)
        return before;
    uint64_t index;
    int64_t *kept = recorder_take(RECORDER_COUNTS, (uint64_t)blocks + 1, &index);
    if (kept == NULL || index > UINT32_MAX) {
        atomic_fetch_add(&recorder_store->uncounted, 1);
        return 0;
    }
    for (int i = 0; i < blocks; ++i)
        kept[i + 1] = count_of(side, i);
    kept[0] = blocks;
    atomic_store_explicit(kept_before, (uint32_t)index, memory_order_relaxed);
    return (uint32_t)index;
}

struct amount {
    int64_t elements, bytes, extent;
    uint32_t counts;
};

static struct amount amount_of(const struct recorder_side *side, struct element element, int blocks,
                               _Atomic uint32_t *kept_before) {
    struct amount amount = {.bytes = element.bytes, .extent = element.extent};
    if (side->counts == NULL && side->large_counts == NULL) {
        amount.elements = (int64_t)side->count;
        amount.bytes *= amount.elements;
        return amount;
    }
    int64_t of_types = 0;
    for (int i = 0; i < blocks; ++i) {
        const int64_t count = count_of(side, i);
        amount.elements += count;
        if (side->types != NULL && count > 0)
            of_types += count * size_of(side->types[i]);
    }
    amount.bytes = side->types != NULL ? of_types : amount.bytes * amount.elements;
    if (blocks > 0)
        amount.counts = keep_counts(side, blocks, kept_before);
    return amount;
}

/* Which sides of the arguments count here, as the MPI standard says: the others are not read. */
static uint32_t sides_of(const struct recorder_call *call, unsigned flags,
                         const struct recorder_communicator *one) {
    uint32_t sides =
        (call->send.present ? RECORDER_SENDS : 0u) | (call->recv.present ? RECORDER_RECEIVES : 0u);
    if (flags & RECORDER_ROOTED) {
        if (call->root == MPI_PROC_NULL)
            return 0;
        const int is_root = call->root == (one->remote > 0 ? MPI_ROOT : one->rank);
        if (!is_root && (flags & RECORDER_SENDS_AT_ROOT))
            sides &= ~(uint32_t)RECORDER_SENDS;
        if (!is_root && (flags & RECORDER_RECEIVES_AT_ROOT))
            sides &= ~(uint32_t)RECORDER_RECEIVES;
        if (is_root && one->remote > 0 && (flags & RECORDER_SENDS_AT_ROOT))
            sides &= ~(uint32_t)RECORDER_RECEIVES;
        if (is_root && one->remote > 0 && (flags & RECORDER_RECEIVES_AT_ROOT))
            sides &= ~(uint32_t)RECORDER_SENDS;
    }
    if (call->in_place)
        sides = (sides &
                 ~(uint32_t)(flags & RECORDER_OF_RECEIVER ? RECORDER_RECEIVES : RECORDER_SENDS)) |
                RECORDER_IN_PLACE;
    return sides;
}

static void describe(struct recorder_event *event, const struct recorder_call *call,
                     const struct recorder_communicator *one, struct recorder_place *place) {
    const unsigned flags = recorder_functions[call->function].flags;
    const int blocks = blocks_of(one, flags);
    const struct recorder_side *send = &call->send, *recv = &call->recv;
    struct element element = {0};
    event->flags = sides_of(call, flags, one);
    if (event->flags & RECORDER_SENDS) {
        element = element_of(send);
        const struct amount sent = amount_of(send, element, blocks, &place->send_counts);
        event->sent = sent.elements;
        event->sent_bytes = sent.bytes;
        event->send_extent = sent.extent;
        event->send_counts = sent.counts;
    }
    if (event->flags & RECORDER_RECEIVES) {
        /* Most calls have one datatype, which is asked once. */
        if (!(event->flags & RECORDER_SENDS) || recv->type != send->type)
            element = element_of(recv);
        const struct amount received = amount_of(recv, element, blocks, &place->recv_counts);
        event->received = received.elements;
        event->received_bytes = received.bytes;
        event->recv_extent = received.extent;
        event->recv_counts = received.counts;
    }
    event->root = flags & RECORDER_ROOTED ? call->root : -1;
    event->operation = (uint16_t)(call->op == MPI_OP_NULL ? 0 : recorder_operation(call->op));
}

/* A rank that has no room goes on counting, so that its later calls find their counterparts. */
static struct recorder_event *record(const struct recorder_call *call, const void *address,
                                     int64_t arrival) {
    uint64_t index;
    struct recorder_communicator *one = recorder_find(call->comm);
    if (one == NULL)
        return NULL;
    if (one == &recorder_no_room) {
        atomic_fetch_add_explicit(&recorder_store->unnamed, 1, memory_order_relaxed);
        return NULL;
    }
    const uint32_t sequence = atomic_fetch_add_explicit(&one->calls, 1, memory_order_relaxed);
    struct recorder_event *event = recorder_take(RECORDER_EVENTS, 1, &index);
    if (event == NULL)
        return NULL;
    struct recorder_place *place = recorder_place_of(address);
    event->communicator =
        (uint32_t)(one - (struct recorder_communicator *)recorder_entry(RECORDER_COMMUNICATORS, 0));
    event->sequence = sequence;
    event->site = atomic_load_explicit(&place->site, memory_order_relaxed);
    event->function = (uint16_t)call->function;
    describe(event, call, one, place);
    event->arrival = arrival; /* at last: an event without it is not whole */
    return event;
}

struct recorder_event *recorder_enter(const struct recorder_call *call, const void *address) {
    if (depth++ > 0 || !atomic_load_explicit(&recorder_active, memory_order_relaxed) ||
        call->comm == MPI_COMM_NULL)
        return NULL;
    const int64_t arrival = recorder_now();
    return record(call, recorder_fortran_site != NULL ? recorder_fortran_site : address, arrival);
}

void recorder_leave(struct recorder_event *event) {
    --depth;
    if (event != NULL)
        event->exit = recorder_now();
}
