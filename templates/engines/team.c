/* Some of the ranks, and what they do among themselves: for hierarchies. */
#include <stdlib.h>

#include "pipeline_up.h"
#include "recursive_multiplying.h"
#include "reduction_tree.h"
#include "ring_allreduce.h"
#include "ring_place.h"
#include "team.h"
#include "tree.h"

/* Segments that may be on their way to a rank, and from it, at the same time. */
enum { IN_FLIGHT = 8 };

enum { TWO = 2 };

struct coll_parted coll_team_hosts(const struct coll_comm *cc) {
    return (struct coll_parted){cc->hosts, cc->host, cc->first_place, cc->order};
}

struct team coll_team_of_part(const struct coll_comm *cc, const struct coll_parted *parted) {
    const int first = parted->first[parted->part];
    struct team team = {.members = parted->first[parted->part + 1] - first,
                        .ranks = parted->ranks + first};
    while (team.ranks[team.number] != cc->rank)
        ++team.number;
    return team;
}

static int is_long(const struct coll_call *call, int segment_size) {
    return call->bytes > segment_size;
}

static int allreduce_whole(const struct coll_call *call, const struct coll_comm *cc,
                           const struct team *team) {
    const struct multiplying_members all = {team->members, team->number, team->ranks, NULL};
    return coll_recursive_multiplying(call, cc, &all, TWO);
}

int coll_team_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                        const struct team *team, int segment_size) {
    const int members = team->members, number = team->number;
    if (members == 1)
        return MPI_SUCCESS;
    if (members == TWO || !is_long(call, segment_size))
        return allreduce_whole(call, cc, team);
    const struct ring_place here = {members, number, team->ranks[(number + 1) % members],
                                    team->ranks[(number - 1 + members) % members]};
    return coll_ring_allreduce(call, cc, &here, segment_size);
}

int coll_team_allreduce_across(const struct coll_call *call, const struct coll_comm *cc,
                               const struct coll_parted *parted, int number, int segment_size) {
    int *ranks = malloc((size_t)parted->parts * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    for (int part = 0; part < parted->parts; ++part)
        ranks[part] = parted->ranks[parted->first[part] + number];
    const struct team team = {parted->parts, parted->part, ranks};
    const int error = coll_team_allreduce(call, cc, &team, segment_size);
    free(ranks);
    return error;
}

/* The member before or after this one on the chain from number 0 on; nobody beyond its ends. */
static int beside(const struct team *team, int step) {
    const int number = team->number + step;
    return number < 0 || number >= team->members ? MPI_PROC_NULL : team->ranks[number];
}

static struct reduction_tree tree_of(const struct team *team) {
    return (struct reduction_tree){
        .members = team->members, .number = team->number, .ranks = team->ranks};
}

int coll_team_reduce(const struct coll_call *call, const struct coll_comm *cc,
                     const struct team *team, int segment_size) {
    if (team->members == 1)
        return MPI_SUCCESS;
    if (!is_long(call, segment_size)) {
        const struct reduction_tree tree = tree_of(team);
        return coll_reduction_tree_combine(call, cc, &tree, REDUCTION_TREE_BINOMIAL, call->recv,
                                           call->recv_count);
    }
    struct tree_node node = {.parent = beside(team, -1), .child = {beside(team, 1)}};
    node.children = node.child[0] != MPI_PROC_NULL;
    return coll_pipeline_up(call, cc, &node, segment_size);
}

/* A segment of the result. */
struct piece {
    char *data;
    int count;
};

static struct piece piece_at(const struct coll_call *call, int segments, int number) {
    const MPI_Aint first = (MPI_Aint)call->recv_count * number / segments;
    const MPI_Aint end = (MPI_Aint)call->recv_count * (number + 1) / segments;
    return (struct piece){coll_element(call, call->recv, first), (int)(end - first)};
}

static int expect(const struct coll_call *call, const struct coll_comm *cc, int previous,
                  int segments, int number, MPI_Request *receives) {
    if (number >= segments)
        return MPI_SUCCESS;
    const struct piece piece = piece_at(call, segments, number);
    return PMPI_Irecv(piece.data, piece.count, call->recv_type, previous, COLL_TAG_DATA, cc->comm,
                      &receives[number % IN_FLIGHT]);
}

/* Pass segment after segment on as they arrive. Receives come first among the requests. */
static int pass_on(const struct coll_call *call, const struct coll_comm *cc,
                   const struct team *team, int segments, MPI_Request *requests) {
    const int previous = beside(team, -1), next = beside(team, 1);
    MPI_Request *sends = requests + IN_FLIGHT;
    for (int number = 0; number < IN_FLIGHT; ++number)
        COLL_TRY(expect(call, cc, previous, segments, number, requests));
    for (int number = 0; number < segments; ++number) {
        const struct piece piece = piece_at(call, segments, number);
        const int slot = number % IN_FLIGHT;
        COLL_TRY(PMPI_Wait(&requests[slot], MPI_STATUS_IGNORE));
        COLL_TRY(expect(call, cc, previous, segments, number + IN_FLIGHT, requests));
        COLL_TRY(PMPI_Wait(&sends[slot], MPI_STATUS_IGNORE));
        COLL_TRY(PMPI_Isend(piece.data, piece.count, call->recv_type, next, COLL_TAG_DATA, cc->comm,
                            &sends[slot]));
    }
    return MPI_SUCCESS;
}

int coll_team_broadcast(const struct coll_call *call, const struct coll_comm *cc,
                        const struct team *team, int segment_size) {
    MPI_Request requests[2 * IN_FLIGHT];
    if (team->members == 1)
        return MPI_SUCCESS;
    if (!is_long(call, segment_size)) {
        const struct reduction_tree tree = tree_of(team);
        return coll_reduction_tree_broadcast(call, cc, &tree);
    }
    MPI_Aint segments = (call->bytes + segment_size - 1) / segment_size;
    if (segments > call->recv_count)
        segments = call->recv_count;
    for (int i = 0; i < 2 * IN_FLIGHT; ++i)
        requests[i] = MPI_REQUEST_NULL;
    const int error = pass_on(call, cc, team, (int)segments, requests);
    return coll_complete(requests, IN_FLIGHT, IN_FLIGHT, error);
}
