/* An allreduce around a ring, in segments. */
#include <stdlib.h>

#include "coll.h"
#include "ring_allreduce.h"
#include "ring_place.h"
#include "vector_blocks.h"

/* Segments that a rank has under way at a time, each way. */
enum { UNDER_WAY_MOST = 4 };

/*
 * What a rank sends and receives. In step s it sends the block of the place s before its own, which
 * it received in the step before, and receives that of the place before that one. In the first
 * p - 1 steps blocks collect the operands of all ranks, not in the order of the ranks; in the
 * others they are complete. A block goes as segments, and they are counted through all steps.
 */
struct stream {
    const struct coll_call *call;
    const struct coll_comm *cc;
    const struct ring_place *here;
    int segments;        /* of a block */
    int reductions;      /* segments that are to be combined; as many come after them */
    int under_way, most; /* segments at a time, elements of the longest */
    struct coll_elements room;
    MPI_Request requests[2 * UNDER_WAY_MOST]; /* the receives, then the sends */
};

/* A segment of the block that the rank at `place` sends: the parts of a block are nearly equal. */
static struct block segment_from(const struct stream *stream, int number, int place) {
    const int p = stream->here->size, parts = stream->segments;
    const int step = number / parts, part = number % parts;
    const struct block block = coll_vector_block(stream->call, p, (place - step + 2 * p) % p);
    const MPI_Aint start = (MPI_Aint)block.count * part / parts;
    const MPI_Aint end = (MPI_Aint)block.count * (part + 1) / parts;
    return (struct block){block.first + start, (int)(end - start)};
}

static char *room_for(const struct stream *stream, int number) {
    return coll_element(stream->call, stream->room.data,
                        (MPI_Aint)(number % stream->under_way) * stream->most);
}

/* By now what the segment overwrites has been sent, and what is sent has come and is combined. */
static int start(struct stream *stream, int number) {
    const struct coll_call *call = stream->call;
    const struct ring_place *here = stream->here;
    const struct block out = segment_from(stream, number, here->place);
    const struct block in = segment_from(stream, number, here->place - 1);
    MPI_Request *request = &stream->requests[number % stream->under_way];
    char *to = number < stream->reductions ? room_for(stream, number)
                                           : coll_element(call, call->recv, in.first);
    COLL_TRY(PMPI_Irecv(to, in.count, call->recv_type, here->previous, COLL_TAG_DATA,
                        stream->cc->comm, request));
    return PMPI_Isend(coll_element(call, call->recv, out.first), out.count, call->recv_type,
                      here->next, COLL_TAG_DATA, stream->cc->comm, request + UNDER_WAY_MOST);
}

static int finish(struct stream *stream, int number) {
    const struct coll_call *call = stream->call;
    const struct block in = segment_from(stream, number, stream->here->place - 1);
    MPI_Request *request = &stream->requests[number % stream->under_way];
    COLL_TRY(PMPI_Wait(request, MPI_STATUS_IGNORE));
    if (number < stream->reductions)
        COLL_TRY(coll_fold(call, stream->cc, room_for(stream, number),
                           coll_element(call, call->recv, in.first), in.count, 1));
    return PMPI_Wait(request + UNDER_WAY_MOST, MPI_STATUS_IGNORE);
}

/* No more segments are under way than a block has: each has come before it is passed on. */
static int run_stream(struct stream *stream) {
    const int segments = 2 * stream->reductions, lag = stream->under_way;
    for (int number = 0; number < segments + lag; ++number) {
        if (number >= lag)
            COLL_TRY(finish(stream, number - lag));
        if (number < segments)
            COLL_TRY(start(stream, number));
    }
    return MPI_SUCCESS;
}

/* Segments of about so many bytes; none is shorter than an element. */
static int segments_of(const struct coll_call *call, int elements, int segment_size) {
    const MPI_Aint bytes = call->bytes / call->recv_count * elements;
    const MPI_Aint segments = (bytes + segment_size - 1) / segment_size;
    return segments < 1 ? 1 : segments > elements ? elements : (int)segments;
}

int coll_ring_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                        const struct ring_place *here, int segment_size) {
    const int block = call->recv_count / here->size + (call->recv_count % here->size != 0);
    struct stream stream = {.call = call, .cc = cc, .here = here};
    stream.segments = segments_of(call, block, segment_size);
    stream.reductions = (here->size - 1) * stream.segments;
    stream.under_way = stream.segments < UNDER_WAY_MOST ? stream.segments : UNDER_WAY_MOST;
    stream.most = block / stream.segments + (block % stream.segments != 0);
    COLL_TRY(coll_elements_for(call, (MPI_Count)stream.under_way * stream.most, &stream.room));
    for (int i = 0; i < 2 * UNDER_WAY_MOST; ++i)
        stream.requests[i] = MPI_REQUEST_NULL;
    const int error = run_stream(&stream);
    if (error != MPI_SUCCESS)
        coll_abandon(stream.requests, UNDER_WAY_MOST, UNDER_WAY_MOST);
    free(stream.room.memory);
    return error;
}
