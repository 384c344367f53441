/* An alltoall in which the first rank of each host, its leader, speaks for all of them. */
#include <stdlib.h>
#include <string.h>

#include "leaders.h"

static char *block_at(const struct leaders *leaders, char *blocks, int number) {
    return blocks + number * leaders->call->bytes;
}

/* The rank of the i-th member of this host. */
static int rank_beside(const struct leaders *leaders, int i) {
    return leaders->cc->order[leaders->cc->first_place[leaders->cc->host] + i];
}

static void copy(const struct leaders *leaders, char *to, const char *from, int blocks) {
    memcpy(to, from, (size_t)blocks * (size_t)leaders->call->bytes);
}

/* What this rank has for member k is block k. */
static void pack(const struct leaders *leaders, char *blocks) {
    for (int k = 0; k < leaders->cc->size; ++k)
        copy(leaders, block_at(leaders, blocks, k),
             coll_send_block(leaders->call, leaders->cc->order[k]), 1);
}

/* What member k has for this rank is block k. */
static void unpack(const struct leaders *leaders, char *blocks) {
    for (int k = 0; k < leaders->cc->size; ++k)
        copy(leaders, coll_recv_block(leaders->call, leaders->cc->order[k]),
             block_at(leaders, blocks, k), 1);
}

/* In each step, leaders send to the next host and receive from the one as far before. */
int coll_leaders_in_turn(const struct leaders *leaders) {
    const int hosts = leaders->cc->hosts;
    for (int step = 1; step < hosts; ++step) {
        const int to = (leaders->cc->host + step) % hosts;
        const int from = (leaders->cc->host - step + hosts) % hosts;
        COLL_TRY(PMPI_Sendrecv(
            leaders->out + leaders_offset(leaders, to), leaders_count(leaders, to), leaders->block,
            leaders_rank(leaders, to), COLL_TAG_DATA, leaders->in + leaders_offset(leaders, from),
            leaders_count(leaders, from), leaders->block, leaders_rank(leaders, from),
            COLL_TAG_DATA, leaders->cc->comm, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

/* The leader gets the blocks of all ranks of its host into `in`, member after member. */
static int gather(const struct leaders *leaders) {
    const int p = leaders->cc->size;
    int posted = 0, error = MPI_SUCCESS;
    for (int i = 1; i < leaders->ranks && error == MPI_SUCCESS; ++i) {
        error = PMPI_Irecv(block_at(leaders, leaders->in, i * p), p, leaders->block,
                           rank_beside(leaders, i), COLL_TAG_DATA, leaders->cc->comm,
                           &leaders->requests[posted]);
        posted += error == MPI_SUCCESS;
    }
    pack(leaders, leaders->in);
    return coll_complete(leaders->requests, posted, 0, error);
}

/* From `in` to `out`: by the host that they are for, then by the member that they are of. */
static void sort_by_host(const struct leaders *leaders) {
    for (int host = 0; host < leaders->cc->hosts; ++host) {
        const int first = leaders->cc->first_place[host], count = leaders_ranks_on(leaders, host);
        for (int i = 0; i < leaders->ranks; ++i)
            copy(leaders, block_at(leaders, leaders->out, leaders->ranks * first + i * count),
                 block_at(leaders, leaders->in, i * leaders->cc->size + first), count);
    }
}

/* What the ranks of one host have for each other needs no network. */
static void keep_own(const struct leaders *leaders) {
    const MPI_Aint own = leaders_offset(leaders, leaders->cc->host);
    copy(leaders, leaders->in + own, leaders->out + own, leaders_count(leaders, leaders->cc->host));
}

/* From `in`, by the member that they are of, to `out`, by the member that they are for. */
static void sort_by_member(const struct leaders *leaders) {
    const int p = leaders->cc->size;
    for (int i = 0; i < leaders->ranks; ++i)
        for (int k = 0; k < p; ++k)
            copy(leaders, block_at(leaders, leaders->out, i * p + k),
                 block_at(leaders, leaders->in, k * leaders->ranks + i), 1);
}

static int scatter(const struct leaders *leaders) {
    const int p = leaders->cc->size;
    int posted = 0, error = MPI_SUCCESS;
    for (int i = 1; i < leaders->ranks && error == MPI_SUCCESS; ++i) {
        error = PMPI_Isend(block_at(leaders, leaders->out, i * p), p, leaders->block,
                           rank_beside(leaders, i), COLL_TAG_DATA, leaders->cc->comm,
                           &leaders->requests[posted]);
        posted += error == MPI_SUCCESS;
    }
    unpack(leaders, leaders->out);
    return coll_complete(leaders->requests, 0, posted, error);
}

static int lead(const struct leaders *leaders) {
    COLL_TRY(gather(leaders));
    sort_by_host(leaders);
    keep_own(leaders);
    COLL_TRY(leaders->exchange(leaders));
    sort_by_member(leaders);
    return scatter(leaders);
}

static int follow(const struct leaders *leaders) {
    const int p = leaders->cc->size, leader = rank_beside(leaders, 0);
    const MPI_Comm comm = leaders->cc->comm;
    pack(leaders, leaders->out);
    COLL_TRY(PMPI_Send(leaders->out, p, leaders->block, leader, COLL_TAG_DATA, comm));
    COLL_TRY(
        PMPI_Recv(leaders->in, p, leaders->block, leader, COLL_TAG_DATA, comm, MPI_STATUS_IGNORE));
    unpack(leaders, leaders->in);
    return MPI_SUCCESS;
}

/* With a type for a block, as a host's blocks may have more bytes than an int can count. */
static int in_blocks(struct leaders *leaders, int part(const struct leaders *leaders)) {
    int error = PMPI_Type_contiguous((int)leaders->call->bytes, MPI_PACKED, &leaders->block);
    if (error == MPI_SUCCESS)
        error = PMPI_Type_commit(&leaders->block);
    if (error == MPI_SUCCESS)
        error = part(leaders);
    return error == MPI_SUCCESS ? PMPI_Type_free(&leaders->block) : error;
}

int coll_leaders_run(const struct coll_call *call, const struct coll_comm *cc,
                     const struct coll_parameters *parameters,
                     int exchange(const struct leaders *leaders)) {
    struct leaders leaders = {
        .call = call,
        .cc = cc,
        .parameters = parameters,
        .exchange = exchange,
        .ranks = cc->first_place[cc->host + 1] - cc->first_place[cc->host],
    };
    const int leads = cc->rank == rank_beside(&leaders, 0);
    const MPI_Aint blocks = (MPI_Aint)(leads ? leaders.ranks : 1) * cc->size;
    const MPI_Aint room = blocks * call->bytes;
    char *memory;
    COLL_TRY(coll_allocate(2 * room, &memory));
    leaders.out = memory;
    leaders.in = memory + room;
    leaders.requests = malloc((size_t)leaders.ranks * sizeof *leaders.requests);
    int error = MPI_ERR_NO_MEM;
    if (leaders.requests != NULL)
        error = in_blocks(&leaders, leads ? lead : follow);
    free(leaders.requests);
    if (error == MPI_SUCCESS) /* else sends that were left to MPI may still read it */
        free(memory);
    return error;
}
