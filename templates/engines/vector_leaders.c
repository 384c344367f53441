/*
 * An alltoallv in which the first rank of each host, its leader, carries short blocks for all.
 *
 * A rank tells its leader the lengths of all its blocks, then sends those that are short enough.
 * Leaders tell each other the lengths of what their hosts have for each other, so each knows what
 * it gets. Each rank knows how much its leader has for it. So only lengths go where there may be
 * no data, and both ends of a longer block know that no leader carries it.
 */
#include <stdlib.h>
#include <string.h>

#include "block_rounds.h"
#include "vector_leaders.h"

enum {
    COPIES = 4,         /* a leader has what its ranks send, and what they receive, twice */
    SEGMENT = 4 * 1024, /* of longer blocks, in bytes */
};

/* The rank of the i-th member of this host. */
static int rank_beside(const struct vector_leaders *leaders, int i) {
    return leaders->cc->order[leaders->cc->first_place[leaders->cc->host] + i];
}

static int carried(const struct vector_leaders *leaders, int rank, MPI_Count bytes) {
    return rank == leaders->cc->rank || bytes > leaders->longest ? 0 : (int)bytes;
}

/* The bytes of the block for rank `to`, or of that from a rank, if leaders carry it; else 0. */
static int bytes_to(const struct vector_leaders *leaders, int to) {
    return carried(leaders, to, coll_send_count(leaders->call, to));
}

static int bytes_from(const struct vector_leaders *leaders, int from) {
    return carried(leaders, from, coll_recv_count(leaders->call, from));
}

/* Write the length of the block for each member; return all bytes. */
static int find_lengths(const struct vector_leaders *leaders, int *lengths) {
    int all = 0;
    for (int k = 0; k < leaders->cc->size; ++k) {
        lengths[k] = bytes_to(leaders, leaders->cc->order[k]);
        all += lengths[k];
    }
    return all;
}

static int expected(const struct vector_leaders *leaders) {
    int all = 0;
    for (int rank = 0; rank < leaders->cc->size; ++rank)
        all += bytes_from(leaders, rank);
    return all;
}

/* The blocks that leaders carry, one after the other, by the member that they are for. */
static void pack(const struct vector_leaders *leaders, char *packed) {
    for (int k = 0; k < leaders->cc->size; ++k) {
        const int to = leaders->cc->order[k], bytes = bytes_to(leaders, to);
        if (bytes > 0)
            memcpy(packed, coll_send_block(leaders->call, to), (size_t)bytes);
        packed += bytes;
    }
}

/* Likewise by the member that they are of. */
static void unpack(const struct vector_leaders *leaders, const char *packed) {
    for (int k = 0; k < leaders->cc->size; ++k) {
        const int from = leaders->cc->order[k], bytes = bytes_from(leaders, from);
        if (bytes > 0)
            memcpy(coll_recv_block(leaders->call, from), packed, (size_t)bytes);
        packed += bytes;
    }
}

static int sum(const int *numbers, int count) {
    int all = 0;
    for (int i = 0; i < count; ++i)
        all += numbers[i];
    return all;
}

/* At least a byte, so that only a lack of memory gives NULL. */
static char *room_for(int bytes) {
    return malloc((size_t)bytes + 1);
}

/*
 * Start to receive from each other member of this host, or to send to it; at[i] to at[i + 1] is the
 * place of the i-th. Returns how many messages there are.
 */
static int post_beside(const struct vector_leaders *leaders, int sends, char *packed, const int *at,
                       MPI_Request *requests, int *error) {
    int posted = 0;
    *error = MPI_SUCCESS;
    for (int i = 1; i < leaders->ranks && *error == MPI_SUCCESS; ++i) {
        const int bytes = at[i + 1] - at[i], rank = rank_beside(leaders, i);
        if (bytes == 0)
            continue;
        *error = sends ? PMPI_Isend(packed + at[i], bytes, MPI_PACKED, rank, COLL_TAG_DATA,
                                    leaders->cc->comm, &requests[posted])
                       : PMPI_Irecv(packed + at[i], bytes, MPI_PACKED, rank, COLL_TAG_DATA,
                                    leaders->cc->comm, &requests[posted]);
        posted += *error == MPI_SUCCESS;
    }
    return posted;
}

static int gather_lengths(const struct vector_leaders *leaders, int *lengths,
                          MPI_Request *requests) {
    const int p = leaders->cc->size;
    int posted = 0, error = MPI_SUCCESS;
    for (int i = 1; i < leaders->ranks && error == MPI_SUCCESS; ++i) {
        error = PMPI_Irecv(lengths + (size_t)i * (size_t)p, p, MPI_INT, rank_beside(leaders, i),
                           COLL_TAG_DATA, leaders->cc->comm, &requests[posted]);
        posted += error == MPI_SUCCESS;
    }
    find_lengths(leaders, lengths);
    return coll_complete(requests, posted, 0, error);
}

/*
 * From `gathered`, by the member that blocks are of, to `out`, by the host that they are for; at[i]
 * goes on from where member i begins.
 */
static void sort_by_host(const struct vector_leaders *leaders, const int *lengths,
                         const char *gathered, int *at) {
    const int p = leaders->cc->size;
    char *packed = leaders->out;
    for (int host = 0; host < leaders->cc->hosts; ++host) {
        const int first = leaders->cc->first_place[host];
        const int count = leaders->cc->first_place[host + 1] - first;
        leaders->out_start[host] = (int)(packed - leaders->out);
        for (int i = 0; i < leaders->ranks; ++i) {
            const int *own = lengths + (size_t)i * (size_t)p + first;
            const int bytes = sum(own, count);
            memcpy(leaders->out_lengths + vector_leaders_first(leaders, host) + i * count, own,
                   (size_t)count * sizeof *own);
            memcpy(packed, gathered + at[i], (size_t)bytes);
            at[i] += bytes;
            packed += bytes;
        }
    }
    leaders->out_start[leaders->cc->hosts] = (int)(packed - leaders->out);
}

/* All at once: each has four bytes for a block. What this host has for itself needs no message. */
static int exchange_lengths(const struct vector_leaders *leaders, MPI_Request *requests) {
    const struct coll_comm *cc = leaders->cc;
    int received = 0, sent = 0, error = MPI_SUCCESS;
    for (int step = 1; step < cc->hosts && error == MPI_SUCCESS; ++step) {
        const int from = (cc->host - step + cc->hosts) % cc->hosts;
        error = PMPI_Irecv(leaders->in_lengths + vector_leaders_first(leaders, from),
                           vector_leaders_count(leaders, from), MPI_INT,
                           vector_leaders_rank(leaders, from), COLL_TAG_DATA, cc->comm,
                           &requests[received]);
        received += error == MPI_SUCCESS;
    }
    for (int step = 1; step < cc->hosts && error == MPI_SUCCESS; ++step) {
        const int to = (cc->host + step) % cc->hosts;
        error =
            PMPI_Isend(leaders->out_lengths + vector_leaders_first(leaders, to),
                       vector_leaders_count(leaders, to), MPI_INT, vector_leaders_rank(leaders, to),
                       COLL_TAG_DATA, cc->comm, &requests[received + sent]);
        sent += error == MPI_SUCCESS;
    }
    const int own = vector_leaders_first(leaders, cc->host);
    memcpy(leaders->in_lengths + own, leaders->out_lengths + own,
           (size_t)vector_leaders_count(leaders, cc->host) * sizeof *leaders->in_lengths);
    return coll_complete(requests, received, sent, error);
}

/* From `in`, by the host that blocks are from, to `sorted`, by the member that they are for. */
static void sort_by_member(const struct vector_leaders *leaders, int *at, char *sorted) {
    const char *packed = leaders->in;
    const int *length = leaders->in_lengths;
    for (int k = 0; k < leaders->cc->size; ++k)
        for (int i = 0; i < leaders->ranks; ++i, ++length) {
            memcpy(sorted + at[i], packed, (size_t)*length);
            at[i] += *length;
            packed += *length;
        }
}

/* Where the bytes for each member of this host begin when they are sorted. */
static void find_members(const struct vector_leaders *leaders, int *at) {
    memset(at, 0, ((size_t)leaders->ranks + 1) * sizeof *at);
    for (int k = 0; k < leaders->cc->size; ++k)
        for (int i = 0; i < leaders->ranks; ++i)
            at[i + 1] += leaders->in_lengths[(size_t)k * (size_t)leaders->ranks + (size_t)i];
    for (int i = 0; i < leaders->ranks; ++i)
        at[i + 1] += at[i];
}

/* The memory of a leader. */
struct memory {
    int *numbers; /* all of these, and those of struct vector_leaders */
    int *lengths; /* of each member's blocks, by the members that they are for */
    int *at;      /* the first byte of each member, and at the end the number of all bytes */
    int *moved;   /* a copy of it, which sorting changes */
    char *gathered, *sorted;
    MPI_Request *requests;
};

static int gather(struct vector_leaders *leaders, struct memory *memory) {
    const int p = leaders->cc->size;
    int error;
    COLL_TRY(gather_lengths(leaders, memory->lengths, memory->requests));
    memory->at[0] = 0;
    for (int i = 0; i < leaders->ranks; ++i)
        memory->at[i + 1] = memory->at[i] + sum(memory->lengths + (size_t)i * (size_t)p, p);
    memory->gathered = room_for(memory->at[leaders->ranks]);
    leaders->out = room_for(memory->at[leaders->ranks]);
    if (memory->gathered == NULL || leaders->out == NULL)
        return MPI_ERR_NO_MEM;
    const int posted =
        post_beside(leaders, 0, memory->gathered, memory->at, memory->requests, &error);
    pack(leaders, memory->gathered);
    COLL_TRY(coll_complete(memory->requests, posted, 0, error));
    sort_by_host(leaders, memory->lengths, memory->gathered, memory->at);
    free(memory->gathered);
    return MPI_SUCCESS;
}

static int cross(struct vector_leaders *leaders, struct memory *memory) {
    const struct coll_comm *cc = leaders->cc;
    COLL_TRY(exchange_lengths(leaders, memory->requests));
    leaders->in_start[0] = 0;
    for (int host = 0; host < cc->hosts; ++host)
        leaders->in_start[host + 1] =
            leaders->in_start[host] + sum(leaders->in_lengths + vector_leaders_first(leaders, host),
                                          vector_leaders_count(leaders, host));
    leaders->in = room_for(leaders->in_start[cc->hosts]);
    if (leaders->in == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(leaders->in + leaders->in_start[cc->host], leaders->out + leaders->out_start[cc->host],
           (size_t)(leaders->in_start[cc->host + 1] - leaders->in_start[cc->host]));
    return leaders->exchange(leaders);
}

static int scatter(const struct vector_leaders *leaders, struct memory *memory) {
    int error;
    find_members(leaders, memory->at);
    memory->sorted = room_for(memory->at[leaders->ranks]);
    if (memory->sorted == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(memory->moved, memory->at, (size_t)leaders->ranks * sizeof *memory->moved);
    sort_by_member(leaders, memory->moved, memory->sorted);
    const int posted =
        post_beside(leaders, 1, memory->sorted, memory->at, memory->requests, &error);
    unpack(leaders, memory->sorted);
    return coll_complete(memory->requests, 0, posted, error);
}

static int allocate(struct vector_leaders *leaders, struct memory *memory) {
    const size_t s = (size_t)leaders->ranks, p = (size_t)leaders->cc->size;
    const size_t hosts = (size_t)leaders->cc->hosts;
    memory->numbers = malloc((3 * s * p + 2 * (s + 1) + 2 * (hosts + 1)) * sizeof(int));
    memory->requests = malloc((s + 2 * hosts) * sizeof *memory->requests);
    if (memory->numbers == NULL || memory->requests == NULL)
        return MPI_ERR_NO_MEM;
    memory->lengths = memory->numbers;
    leaders->out_lengths = memory->lengths + s * p;
    leaders->in_lengths = leaders->out_lengths + s * p;
    memory->at = leaders->in_lengths + s * p;
    memory->moved = memory->at + s + 1;
    leaders->out_start = memory->moved + s + 1;
    leaders->in_start = leaders->out_start + hosts + 1;
    return MPI_SUCCESS;
}

static int lead(struct vector_leaders *leaders) {
    struct memory memory = {0};
    int error = allocate(leaders, &memory);
    if (error == MPI_SUCCESS)
        error = gather(leaders, &memory);
    if (error == MPI_SUCCESS)
        error = cross(leaders, &memory);
    if (error == MPI_SUCCESS)
        error = scatter(leaders, &memory);
    if (error != MPI_SUCCESS) /* messages that were left to MPI may still use the memory */
        return error;
    free(memory.sorted);
    free(leaders->in);
    free(leaders->out);
    free(memory.requests);
    free(memory.numbers);
    return MPI_SUCCESS;
}

static int follow(struct vector_leaders *leaders) {
    const int p = leaders->cc->size, leader = rank_beside(leaders, 0), coming = expected(leaders);
    const MPI_Comm comm = leaders->cc->comm;
    int *lengths = malloc((size_t)p * sizeof *lengths);
    if (lengths == NULL)
        return MPI_ERR_NO_MEM;
    const int going = find_lengths(leaders, lengths);
    char *blocks = room_for(going > coming ? going : coming);
    int error = blocks == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (error == MPI_SUCCESS)
        error = PMPI_Send(lengths, p, MPI_INT, leader, COLL_TAG_DATA, comm);
    if (error == MPI_SUCCESS && going > 0) {
        pack(leaders, blocks);
        error = PMPI_Send(blocks, going, MPI_PACKED, leader, COLL_TAG_DATA, comm);
    }
    if (error == MPI_SUCCESS && coming > 0) {
        error =
            PMPI_Recv(blocks, coming, MPI_PACKED, leader, COLL_TAG_DATA, comm, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS)
            unpack(leaders, blocks);
    }
    free(blocks);
    free(lengths);
    return error;
}

/* So that a leader's copies of all blocks of its ranks have room, the same on all ranks. */
static int limited(const struct coll_comm *cc, int longest) {
    int ranks = 0;
    for (int host = 0; host < cc->hosts; ++host) {
        const int here = cc->first_place[host + 1] - cc->first_place[host];
        ranks = here > ranks ? here : ranks;
    }
    const long long most = COLL_LEADER_MOST / COPIES / ((long long)ranks * cc->size);
    return longest < most ? longest : (int)most;
}

int coll_vector_leaders_run(const struct coll_call *call, const struct coll_comm *cc,
                            const struct coll_parameters *parameters, int longest, int in_flight,
                            int exchange(const struct vector_leaders *leaders)) {
    struct vector_leaders leaders = {
        .call = call,
        .cc = cc,
        .parameters = parameters,
        .exchange = exchange,
        .ranks = cc->first_place[cc->host + 1] - cc->first_place[cc->host],
        .longest = limited(cc, longest),
    };
    COLL_TRY((cc->rank == rank_beside(&leaders, 0) ? lead : follow)(&leaders));
    return coll_block_rounds(call, cc, leaders.longest, SEGMENT, in_flight);
}

/* Start to receive from, or to send to, the host of a step; nothing if there are no bytes. */
static int post(const struct vector_leaders *leaders, const struct block_done *done, int step,
                MPI_Request requests[2]) {
    const struct coll_comm *cc = leaders->cc;
    const int from = (cc->host - step + cc->hosts) % cc->hosts;
    const int to = (cc->host + step) % cc->hosts;
    const int *in = leaders->in_start + from, *out = leaders->out_start + to;
    if (in[1] > in[0] && (done == NULL || !done->from[from]))
        COLL_TRY(PMPI_Irecv(leaders->in + in[0], in[1] - in[0], MPI_PACKED,
                            vector_leaders_rank(leaders, from), COLL_TAG_DATA, cc->comm,
                            &requests[0]));
    if (out[1] > out[0] && (done == NULL || !done->to[to]))
        COLL_TRY(PMPI_Isend(leaders->out + out[0], out[1] - out[0], MPI_PACKED,
                            vector_leaders_rank(leaders, to), COLL_TAG_DATA, cc->comm,
                            &requests[1]));
    return MPI_SUCCESS;
}

static int take_turns(const struct vector_leaders *leaders, int at_a_time,
                      const struct block_done *done, MPI_Request *requests) {
    for (int step = 1; step < leaders->cc->hosts; ++step) {
        MPI_Request *own = requests + 2 * (size_t)(step % at_a_time);
        COLL_TRY(coll_complete(own, 1, 1, MPI_SUCCESS));
        COLL_TRY(post(leaders, done, step, own));
    }
    for (int i = 0; i < at_a_time; ++i)
        COLL_TRY(coll_complete(requests + 2 * (size_t)i, 1, 1, MPI_SUCCESS));
    return MPI_SUCCESS;
}

/* No step hangs: of the steps that are not through, the first one is posted at both ends. */
int coll_vector_leaders_in_turn(const struct vector_leaders *leaders, int at_a_time,
                                const struct block_done *done) {
    MPI_Request *requests = malloc(2 * (size_t)at_a_time * sizeof *requests);
    if (requests == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < 2 * at_a_time; ++i)
        requests[i] = MPI_REQUEST_NULL;
    const int error = take_turns(leaders, at_a_time, done, requests);
    if (error != MPI_SUCCESS)
        for (int i = 0; i < at_a_time; ++i)
            coll_abandon(requests + 2 * (size_t)i, 1, 1);
    free(requests);
    return error;
}
