/* An allgather around a ring of all ranks, in segments. */
#include "ring_pipeline.h"

/* Segments that may be on their way to a rank, and from it, at the same time. */
enum { IN_FLIGHT = 8 };

struct pipeline {
    const struct coll_call *call;
    const struct coll_comm *cc;
    const struct ring_of_ranks *ring;
    int segment_size;
    int previous, next; /* ranks */
};

/*
 * What goes over an edge of the ring: first the block of the rank before the edge, then that of the
 * rank before it, and so on backwards around the ring, each in segments. Empty blocks are left out.
 */
struct stream {
    int blocks;    /* left to go, with the one that is going */
    int place;     /* of the rank whose block comes after that one */
    char *segment; /* the next of that block */
    int rest;      /* bytes of that block, from this segment on */
    MPI_Aint segments;
    MPI_Request requests[IN_FLIGHT]; /* of the latest segments; the k-th has place k % IN_FLIGHT */
};

static int rank_at(const struct ring_of_ranks *ring, int place) {
    const int position = ring->order == NULL ? place : ring->order[place];
    return ring->rank_of == NULL ? position : ring->rank_of[position];
}

/* Go on to the block of the rank at `place` or, if it is empty, to the next one backwards. */
static void begin_block(const struct pipeline *pipeline, struct stream *stream) {
    const int p = pipeline->cc->size;
    for (; stream->blocks > 0; --stream->blocks) {
        const int rank = rank_at(pipeline->ring, stream->place);
        stream->segment = coll_recv_block(pipeline->call, rank);
        stream->rest = (int)coll_recv_count(pipeline->call, rank);
        stream->place = (stream->place - 1 + p) % p;
        if (stream->rest > 0)
            return;
    }
}

static struct stream make_stream(const struct pipeline *pipeline, int place) {
    struct stream stream = {.place = place, .blocks = pipeline->cc->size - 1};
    for (int i = 0; i < IN_FLIGHT; ++i)
        stream.requests[i] = MPI_REQUEST_NULL;
    begin_block(pipeline, &stream);
    return stream;
}

/* The next segment of a stream, which has one. */
static char *next_segment(const struct pipeline *pipeline, struct stream *stream, int *bytes) {
    char *segment = stream->segment;
    *bytes = stream->rest < pipeline->segment_size ? stream->rest : pipeline->segment_size;
    stream->segment += *bytes;
    stream->rest -= *bytes;
    ++stream->segments;
    if (stream->rest == 0) {
        --stream->blocks;
        begin_block(pipeline, stream);
    }
    return segment;
}

/* Let the next segment come from the rank before, once there is room for its request. */
static int receive_next(const struct pipeline *pipeline, struct stream *in) {
    MPI_Request *request = &in->requests[in->segments % IN_FLIGHT];
    int bytes;
    COLL_TRY(PMPI_Wait(request, MPI_STATUS_IGNORE));
    if (in->blocks == 0) {
        ++in->segments;
        return MPI_SUCCESS;
    }
    char *segment = next_segment(pipeline, in, &bytes);
    return PMPI_Irecv(segment, bytes, MPI_PACKED, pipeline->previous, COLL_TAG_DATA,
                      pipeline->cc->comm, request);
}

static int send_next(const struct pipeline *pipeline, struct stream *out) {
    MPI_Request *request = &out->requests[out->segments % IN_FLIGHT];
    int bytes;
    COLL_TRY(PMPI_Wait(request, MPI_STATUS_IGNORE));
    const char *segment = next_segment(pipeline, out, &bytes);
    return PMPI_Isend(segment, bytes, MPI_PACKED, pipeline->next, COLL_TAG_DATA, pipeline->cc->comm,
                      request);
}

/* Segments of the own block, which go out before any that came; as many as there may be at once. */
static int lead_of(const struct pipeline *pipeline) {
    const MPI_Count whole = coll_recv_count(pipeline->call, pipeline->cc->rank);
    const MPI_Count own = (whole + pipeline->segment_size - 1) / pipeline->segment_size;
    return own < IN_FLIGHT ? (int)own : IN_FLIGHT;
}

/*
 * The k-th segment leaves once the (k - lead)-th has come: this is the same one, or follows it.
 * Whatever sends wait for, no rank waits for ever: for the k-th to leave and to come, only those
 * before it must have left and come, and that of all ranks; where the own block is empty, also the
 * k-th of the rank before, and so on back to one whose block is not.
 */
static int go_around(const struct pipeline *pipeline, struct stream *out, struct stream *in) {
    const int lead = lead_of(pipeline);
    for (int i = 0; i < IN_FLIGHT; ++i)
        COLL_TRY(receive_next(pipeline, in));
    while (out->blocks > 0) {
        if (out->segments >= lead)
            COLL_TRY(receive_next(pipeline, in));
        COLL_TRY(send_next(pipeline, out));
    }
    while (in->blocks > 0)
        COLL_TRY(receive_next(pipeline, in));
    return MPI_SUCCESS;
}

int coll_ring_pipeline(const struct coll_call *call, const struct coll_comm *cc,
                       const struct ring_of_ranks *ring, int segment_size) {
    const int p = cc->size, before = (ring->place - 1 + p) % p, after = (ring->place + 1) % p;
    const struct pipeline pipeline = {
        .call = call,
        .cc = cc,
        .ring = ring,
        .segment_size = segment_size,
        .previous = rank_at(ring, before),
        .next = rank_at(ring, after),
    };
    struct stream out = make_stream(&pipeline, ring->place);
    struct stream in = make_stream(&pipeline, before);
    const int error = go_around(&pipeline, &out, &in);
    const int ended = coll_complete(in.requests, IN_FLIGHT, 0, error);
    return coll_complete(out.requests, 0, IN_FLIGHT, ended);
}
