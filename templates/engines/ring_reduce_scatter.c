/*
 * A reduce-scatter around a ring, in segments. Each block begins at the place after its own. It
 * collects the operands of all ranks, and a segment goes on as soon as it is combined.
 */
#include <stdlib.h>

#include "coll.h"
#include "ring_place.h"
#include "ring_reduce_scatter.h"
#include "vector_blocks.h"

/* Segments that may be on their way to and from a rank at the same time. */
enum { IN_FLIGHT = 8 };

/* A way through the blocks of places, downwards, segment by segment. */
struct way {
    int place, blocks; /* where it is, and how many blocks are left */
    int done;          /* elements of the block there */
};

/* What is under way; the k-th segment has place k % IN_FLIGHT among the requests of either kind. */
struct flow {
    const struct coll_call *call;
    const struct coll_comm *cc;
    const struct ring_place *here;
    const int *blocks;       /* [place]; or NULL */
    int segment;             /* elements of a segment */
    struct coll_elements in; /* room for IN_FLIGHT segments */
    struct way expected, combined, given;
    /* Segments so far: on these ways; sent; and those that may be, the own and the combined. */
    MPI_Aint expects, combines, gives, gone, ready;
    MPI_Request receives[IN_FLIGHT], sends[IN_FLIGHT];
};

static struct block block_at(const struct flow *flow, int place) {
    const int number = flow->blocks == NULL ? place : flow->blocks[place];
    return coll_vector_block(flow->call, flow->here->size, number);
}

/* The next segment on the way; empty at its end. Empty blocks have none. */
static struct block next_on(const struct flow *flow, struct way *way) {
    const int p = flow->here->size;
    for (; way->blocks > 0; --way->blocks) {
        const struct block block = block_at(flow, way->place);
        const int rest = block.count - way->done;
        const int count = rest < flow->segment ? rest : flow->segment;
        if (rest > 0) {
            way->done += count;
            return (struct block){block.first + way->done - count, count};
        }
        way->place = (way->place - 1 + p) % p;
        way->done = 0;
    }
    return (struct block){0, 0};
}

static char *room_for(const struct flow *flow, MPI_Aint number) {
    return coll_element(flow->call, flow->in.data, number % IN_FLIGHT * flow->segment);
}

/* Let as many segments come as there is room for. */
static int expect(struct flow *flow) {
    while (flow->expects < flow->combines + IN_FLIGHT) {
        const struct block block = next_on(flow, &flow->expected);
        if (block.count == 0)
            return MPI_SUCCESS;
        COLL_TRY(PMPI_Irecv(room_for(flow, flow->expects), block.count, flow->call->recv_type,
                            flow->here->previous, COLL_TAG_DATA, flow->cc->comm,
                            &flow->receives[flow->expects % IN_FLIGHT]));
        ++flow->expects;
    }
    return MPI_SUCCESS;
}

/* Send what is ready, as far as there are requests for it. */
static int give(struct flow *flow) {
    const struct coll_call *call = flow->call;
    while (flow->gives < flow->gone + IN_FLIGHT && flow->gives < flow->ready) {
        const struct block block = next_on(flow, &flow->given);
        if (block.count == 0)
            return MPI_SUCCESS;
        COLL_TRY(PMPI_Isend(coll_element(call, call->recv, block.first), block.count,
                            call->recv_type, flow->here->next, COLL_TAG_DATA, flow->cc->comm,
                            &flow->sends[flow->gives % IN_FLIGHT]));
        ++flow->gives;
    }
    return MPI_SUCCESS;
}

/* Wait for the oldest receive or the oldest send, whichever is first; *over if there is none. */
static int advance(struct flow *flow, int *over) {
    const struct coll_call *call = flow->call;
    MPI_Request *receive = &flow->receives[flow->combines % IN_FLIGHT];
    MPI_Request *send = &flow->sends[flow->gone % IN_FLIGHT];
    MPI_Request oldest[] = {*receive, *send};
    int which;
    const int error = PMPI_Waitany(2, oldest, &which, MPI_STATUS_IGNORE);
    *receive = oldest[0];
    *send = oldest[1];
    COLL_TRY(error);
    *over = which == MPI_UNDEFINED;
    if (which == 1)
        ++flow->gone;
    if (which != 0)
        return MPI_SUCCESS;
    const struct block block = next_on(flow, &flow->combined);
    char *theirs = room_for(flow, flow->combines++);
    ++flow->ready;
    return coll_fold(call, flow->cc, theirs, coll_element(call, call->recv, block.first),
                     block.count, 1);
}

static int run_flow(struct flow *flow) {
    int error = MPI_SUCCESS;
    for (int over = 0; !over && error == MPI_SUCCESS;) {
        error = expect(flow);
        if (error == MPI_SUCCESS)
            error = give(flow);
        if (error == MPI_SUCCESS)
            error = advance(flow, &over);
    }
    if (error != MPI_SUCCESS)
        coll_abandon(flow->receives, IN_FLIGHT, 0);
    return coll_complete(flow->sends, 0, IN_FLIGHT, error);
}

static int elements_of_segment(const struct coll_call *call, int segment_size, int *elements) {
    int size;
    COLL_TRY(PMPI_Type_size(call->recv_type, &size));
    *elements = segment_size > size ? segment_size / size : 1;
    return MPI_SUCCESS;
}

int coll_ring_reduce_scatter(const struct coll_call *call, const struct coll_comm *cc,
                             const struct ring_place *here, const int *blocks, int segment_size) {
    const int p = here->size, place = here->place;
    const struct way taken = {(place + p - 2) % p, p - 1, 0};
    const struct way given = {(place + p - 1) % p, p - 1, 0};
    struct flow flow = {.call = call, .cc = cc, .here = here, .blocks = blocks};
    flow.expected = flow.combined = taken;
    flow.given = given;
    COLL_TRY(elements_of_segment(call, segment_size, &flow.segment));
    const MPI_Aint own = block_at(&flow, given.place).count;
    flow.ready = (own + flow.segment - 1) / flow.segment;
    COLL_TRY(coll_elements_for(call, (MPI_Count)IN_FLIGHT * flow.segment, &flow.in));
    for (int i = 0; i < IN_FLIGHT; ++i)
        flow.receives[i] = flow.sends[i] = MPI_REQUEST_NULL;
    const int error = run_flow(&flow);
    free(flow.in.memory);
    return error;
}
