/*
 * Blocks of an alltoallv in step order, some bytes at a time; empty ones are skipped.
 *
 * A rank's receives and its sends are two streams, each in the order of steps. A stream posts a
 * block once its window has room for it beside the earlier blocks that are not complete. Take the
 * first block, in the order of steps, that is not complete. Its sender has no earlier send and
 * its receiver no earlier receive to complete, and each window has room for one block: both have
 * posted it, and it completes. So it does not matter that windows differ.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "block_window.h"

struct stream {
    const struct coll_call *call;
    const struct coll_comm *cc;
    bool sends;
    MPI_Count longer_than, in_flight;
    const char *done; /* [rank]; or NULL */
    int step;         /* the next one to look at */
    MPI_Count under_way;
    MPI_Request *requests; /* [step]: those of both streams are next to each other */
};

static int peer_at(const struct stream *stream, int step) {
    const int p = stream->cc->size, rank = stream->cc->rank;
    return stream->sends ? (rank + step) % p : (rank - step + p) % p;
}

/* Packed bytes of the block of a step. */
static int bytes_at(const struct stream *stream, int step, MPI_Count *bytes) {
    const struct coll_call *call = stream->call;
    const int peer = peer_at(stream, step);
    MPI_Count size;
    COLL_TRY(PMPI_Type_size_x(stream->sends ? call->send_type : call->recv_type, &size));
    *bytes = size * (stream->sends ? coll_send_count(call, peer) : coll_recv_count(call, peer));
    return MPI_SUCCESS;
}

static bool is_done(const struct stream *stream) {
    return stream->done != NULL && stream->done[peer_at(stream, stream->step)];
}

/* Post blocks as long as the window has room. */
static int go_on(struct stream *stream) {
    for (; stream->step < stream->cc->size; ++stream->step) {
        MPI_Count bytes;
        MPI_Request *request = &stream->requests[stream->step];
        COLL_TRY(bytes_at(stream, stream->step, &bytes));
        if (bytes <= stream->longer_than || is_done(stream))
            continue;
        if (stream->under_way > 0 && bytes > stream->in_flight - stream->under_way)
            return MPI_SUCCESS;
        stream->under_way += bytes;
        COLL_TRY((stream->sends ? coll_isend : coll_irecv)(stream->call, stream->cc,
                                                           peer_at(stream, stream->step), request));
    }
    return MPI_SUCCESS;
}

static int note_complete(struct stream *stream, int step) {
    MPI_Count bytes;
    COLL_TRY(bytes_at(stream, step, &bytes));
    stream->under_way -= bytes;
    return MPI_SUCCESS;
}

static int carry_out(struct stream streams[2]) {
    const int p = streams[0].cc->size;
    for (;;) {
        int index;
        COLL_TRY(go_on(&streams[0]));
        COLL_TRY(go_on(&streams[1]));
        COLL_TRY(PMPI_Waitany(2 * p, streams[0].requests, &index, MPI_STATUS_IGNORE));
        if (index == MPI_UNDEFINED)
            return MPI_SUCCESS;
        COLL_TRY(note_complete(&streams[index / p], index % p));
    }
}

int coll_block_window(const struct coll_call *call, const struct coll_comm *cc,
                      MPI_Count longer_than, MPI_Count in_flight, const struct block_done *done) {
    const int p = cc->size;
    MPI_Request *requests = malloc(2 * (size_t)p * sizeof *requests);
    int error = requests == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (error == MPI_SUCCESS) {
        struct stream streams[2] = {
            {call, cc, false, longer_than, in_flight, done == NULL ? NULL : done->from, 1, 0,
             requests},
            {call, cc, true, longer_than, in_flight, done == NULL ? NULL : done->to, 1, 0,
             requests + p},
        };
        for (int i = 0; i < 2 * p; ++i)
            requests[i] = MPI_REQUEST_NULL;
        error = carry_out(streams);
        if (error != MPI_SUCCESS)
            coll_abandon(requests, p, p);
    }
    free(requests);
    return error;
}
