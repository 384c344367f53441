/*
 * The plan of a persistent alltoall or alltoallv: the counts of all ranks are gathered, rank 0
 * makes the schedule (pattern.c) and tells it to all, and every rank takes its part of it.
 */
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "pattern.h"
#include "plans.h"

#ifdef COLL_PERSISTENT

/*
 * Unless LIBCOLL_PERSISTENT says more, shorter messages in the mean are for the MPI library. So are
 * more messages than the scheduler orders in a second. Pieces of the schedule have so many bytes,
 * or take so many microseconds on the slowest host's link; and a rank has so many under way.
 */
enum {
    AVERAGE_LEAST = 16384,
    MESSAGES_MOST = 20000,
    SEGMENT = 4096,
    SEGMENT_MICROSECONDS = 50,
    UNDER_WAY = 16
};

/* What a rank tells of its call, before the bytes for each rank and those from each. */
enum { KIND, IS_PLAIN, IS_WRONG, FACTS };

/* What rank 0 tells of the schedule. */
struct told {
    int kind; /* enum coll_plan_kind */
    int pieces, waits;
    MPI_Aint chunk; /* bytes of a message; 0: messages are whole */
};

/* The blocks of this rank's call. */
struct sides {
    const char *send;
    char *recv;
    MPI_Aint send_stride, recv_stride;
    MPI_Datatype send_type, recv_type;
    int in_place;
};

/* What an element of a datatype has of bytes, and whether these are all that there is. */
static int look_at(MPI_Datatype type, MPI_Count *size, int *plain) {
    int dense;
    COLL_TRY(coll_is_dense(type, &dense));
    *plain &= dense;
    return PMPI_Type_size_x(type, size);
}

static int describe(const struct coll_operation *operation, struct sides *sides, int64_t *facts) {
    const struct coll_call *call = &operation->call;
    const int p = operation->cc->size, uneven = coll_shapes[call->collective].uneven;
    MPI_Count sent, received;
    int plain = 1;
    *sides = (struct sides){.send = call->sendbuf,
                            .recv = call->recvbuf,
                            .send_type = call->send_type,
                            .recv_type = call->recv_type,
                            .in_place = call->sendbuf == MPI_IN_PLACE};
    if (sides->in_place) {
        sides->send = sides->recv;
        sides->send_type = sides->recv_type;
    }
    COLL_TRY(look_at(sides->send_type, &sent, &plain));
    COLL_TRY(look_at(sides->recv_type, &received, &plain));
    COLL_TRY(coll_extent(uneven ? 1 : call->recv_count, sides->recv_type, &sides->recv_stride));
    sides->send_stride = sides->recv_stride;
    if (!sides->in_place)
        COLL_TRY(coll_extent(uneven ? 1 : call->send_count, sides->send_type, &sides->send_stride));
    for (int rank = 0; rank < p; ++rank) {
        const MPI_Count count =
            sides->in_place ? coll_recv_count(call, rank) : coll_send_count(call, rank);
        facts[FACTS + rank] = (int64_t)(count * sent);
        facts[FACTS + p + rank] = (int64_t)(coll_recv_count(call, rank) * received);
    }
    facts[IS_PLAIN] = plain;
    facts[IS_WRONG] = sides->in_place && !plain;
    return MPI_SUCCESS;
}

/*
 * Whether all ranks can have a plan, which kind of plan, and whether messages can be cut. The bytes
 * are put together, and must be the same at both ends of a message.
 */
static int judge(const int64_t *facts, int p, int64_t *bytes, int *plain) {
    const int each = FACTS + 2 * p;
    int kind = COLL_PLAN_TOKENS;
    double total = 0;
    int64_t messages = 0;
    *plain = 1;
    for (int from = 0; from < p; ++from) {
        const int64_t *own = facts + (int64_t)from * each;
        kind = own[KIND] < kind ? (int)own[KIND] : kind;
        *plain &= (int)own[IS_PLAIN];
        if (own[IS_WRONG])
            return COLL_PLAN_NATIVE;
        for (int to = 0; to < p; ++to) {
            bytes[(int64_t)from * p + to] = own[FACTS + to];
            if (own[FACTS + to] != facts[(int64_t)to * each + FACTS + p + from])
                return COLL_PLAN_NATIVE;
            total += from == to ? 0 : (double)own[FACTS + to];
            messages += from != to && own[FACTS + to] > 0;
        }
    }
    if (kind == COLL_PLAN_AUTO)
        kind = total < (double)AVERAGE_LEAST * p * (p - 1) ? COLL_PLAN_NATIVE : COLL_PLAN_TOKENS;
    return messages == 0 || messages > MESSAGES_MOST ? COLL_PLAN_NATIVE : kind;
}

/* The most bytes that a rank sends or receives. */
static MPI_Aint most_of(const int64_t *bytes, int p) {
    int64_t most = 0;
    for (int rank = 0; rank < p; ++rank) {
        int64_t out = 0, in = 0;
        for (int peer = 0; peer < p; ++peer) {
            out += bytes[(int64_t)rank * p + peer];
            in += bytes[(int64_t)peer * p + rank];
        }
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return (MPI_Aint)most;
}

/* The host at a place of the depth-first order of all hosts. */
static int host_at(int place) {
    int host = 0;
    while (coll_cluster_place_of(host) != place)
        ++host;
    return host;
}

/* Bytes of a piece at least: many enough that starting it costs little beside its way. */
static MPI_Aint segment_of(const struct pattern *pattern) {
    long long slowest = 0;
    for (int rank = 0; rank < pattern->ranks; ++rank) {
        const long long rate = pattern->tree.rates[pattern->host[rank]];
        slowest = slowest == 0 || rate < slowest ? rate : slowest;
    }
    const long long bytes = slowest / 8 * SEGMENT_MICROSECONDS / 1000000;
    return bytes < SEGMENT ? SEGMENT : (MPI_Aint)(bytes / SEGMENT * SEGMENT);
}

static int schedule(const struct coll_comm *cc, const int64_t *bytes, int plain, int kind,
                    struct told *told, struct pattern_plan *plan) {
    int first_host;
    int *host = malloc((size_t)cc->size * sizeof *host);
    struct pattern pattern = {.ranks = cc->size, .host = host, .bytes = bytes};
    coll_cluster_tree(&pattern.tree, &first_host);
    if (host == NULL)
        return 0;
    for (int h = 0; h < cc->hosts; ++h)
        for (int place = cc->first_place[h]; place < cc->first_place[h + 1]; ++place)
            host[cc->order[place]] = first_host + host_at(cc->host_place[h]);
    told->chunk = plain ? coll_chunk(segment_of(&pattern), most_of(bytes, cc->size)) : 0;
    const int64_t segment = plain ? told->chunk : INT64_MAX / 4;
    const int made = coll_pattern_schedule(&pattern, segment, kind == COLL_PLAN_TOKENS, plan);
    free(host);
    return made;
}

/* On rank 0: the schedule, if there is to be one. */
static void make(const struct coll_comm *cc, const int64_t *facts, struct told *told,
                 struct pattern_plan *plan) {
    int64_t *bytes = malloc((size_t)cc->size * (size_t)cc->size * sizeof *bytes);
    int plain;
    *told = (struct told){.kind = COLL_PLAN_NATIVE};
    if (bytes == NULL)
        return;
    const int kind = judge(facts, cc->size, bytes, &plain);
    if (kind != COLL_PLAN_NATIVE && schedule(cc, bytes, plain, kind, told, plan)) {
        told->kind = kind;
        told->pieces = plan->pieces;
        told->waits = plan->waits;
    }
    free(bytes);
}

/* Collective: every rank gets the schedule; there is none where some rank has no memory for it. */
static int tell(const struct coll_operation *operation, struct told *told,
                struct pattern_plan *plan) {
    const MPI_Comm comm = operation->plans->comm;
    int all = 0;
    COLL_TRY(PMPI_Bcast(told, sizeof *told, MPI_BYTE, 0, comm));
    if (told->kind == COLL_PLAN_NATIVE)
        return MPI_SUCCESS;
    const size_t pieces = (size_t)told->pieces * sizeof *plan->piece;
    const size_t waits = (size_t)told->waits * sizeof *plan->wait;
    if (operation->cc->rank != 0) {
        plan->piece = malloc(pieces + 1);
        plan->wait = malloc(waits + 1);
        plan->pieces = told->pieces;
        plan->waits = told->waits;
    }
    COLL_TRY(coll_all_agree(operation,
                            plan->piece != NULL && (told->waits == 0 || plan->wait != NULL), &all));
    if (!all) {
        told->kind = COLL_PLAN_NATIVE;
        return MPI_SUCCESS;
    }
    COLL_TRY(PMPI_Bcast_c(plan->piece, (MPI_Count)pieces, MPI_BYTE, 0, comm));
    return told->waits == 0 ? MPI_SUCCESS
                            : PMPI_Bcast_c(plan->wait, (MPI_Count)waits, MPI_BYTE, 0, comm);
}

/* What this rank does of the schedule. */
struct part {
    struct coll_operation *operation;
    const struct sides *sides;
    const struct told *told;
    int send_lane;
};

static const char *sent_block(const struct part *part, int to) {
    const struct coll_call *call = &part->operation->call;
    const struct coll_blocks *blocks =
        part->sides->in_place ? &call->recv_blocks : &call->send_blocks;
    return part->sides->send + coll_place_of(blocks, to) * part->sides->send_stride;
}

static char *received_block(const struct part *part, int from) {
    return part->sides->recv +
           coll_place_of(&part->operation->call.recv_blocks, from) * part->sides->recv_stride;
}

/*
 * The messages of a piece, in order: `first` and `last` of their steps. Both ends cut alike. With
 * plain bytes, `bytes` are those of the whole block, and `count` elements of it otherwise.
 */
struct steps {
    int first, last;
};

static struct steps add_piece(const struct part *part, const struct pattern_piece *piece, int sends,
                              int peer, int64_t bytes, MPI_Count count) {
    struct coll_operation *operation = part->operation;
    const MPI_Aint chunk = part->told->chunk;
    const MPI_Datatype type = sends ? part->sides->send_type : part->sides->recv_type;
    const char *from = sends ? sent_block(part, peer) : NULL;
    char *to = sends ? NULL : received_block(part, peer);
    struct steps steps = {-1, -1};
    MPI_Aint start = (MPI_Aint)coll_pattern_start(bytes, piece->part, piece->parts);
    const MPI_Aint end = (MPI_Aint)coll_pattern_start(bytes, piece->part + 1, piece->parts);
    while (start < end) {
        const MPI_Aint length = chunk == 0 || end - start < chunk ? end - start : chunk;
        const MPI_Count elements = chunk == 0 ? count : length;
        const MPI_Datatype unit = chunk == 0 ? type : MPI_BYTE;
        const int step = sends ? coll_add_send(operation, part->send_lane, COLL_STREAM_DATA,
                                               from + start, elements, unit, peer)
                               : coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA,
                                                  to + start, elements, unit, peer);
        steps.first = steps.first < 0 ? step : steps.first;
        steps.last = step;
        start += length;
    }
    return steps;
}

static struct steps add_sent(const struct part *part, const struct pattern_piece *piece,
                             const int64_t *facts) {
    const struct coll_call *call = &part->operation->call;
    const MPI_Count count =
        part->sides->in_place ? coll_recv_count(call, piece->to) : coll_send_count(call, piece->to);
    return add_piece(part, piece, 1, piece->to, facts[FACTS + piece->to], count);
}

static struct steps add_received(const struct part *part, const struct pattern_piece *piece,
                                 const int64_t *facts) {
    return add_piece(part, piece, 0, piece->from,
                     facts[FACTS + part->operation->cc->size + piece->from],
                     coll_recv_count(&part->operation->call, piece->from));
}

/*
 * All messages of a rank, sent and received, in the order of the schedule, with few of them under
 * way. Both ends of the first message of all that is not complete have completed all before it, so
 * they have posted it: it completes.
 */
static void add_window(const struct part *part, const struct pattern_plan *plan,
                       const int64_t *facts) {
    const int rank = part->operation->cc->rank;
    part->operation->lanes[COLL_LANE_RECEIVES].window = UNDER_WAY;
    for (int i = 0; i < plan->pieces; ++i) {
        if (plan->piece[i].from == rank)
            add_sent(part, &plan->piece[i], facts);
        if (plan->piece[i].to == rank)
            add_received(part, &plan->piece[i], facts);
    }
}

/* The tokens that this rank owes when a piece has arrived. */
static void add_owed(const struct part *part, const struct pattern_plan *plan, int piece, int came,
                     const int *first_of) {
    struct coll_operation *operation = part->operation;
    for (int i = first_of[piece]; i < first_of[piece + 1]; ++i) {
        const int taker = plan->piece[first_of[plan->pieces + 1 + i]].from;
        if (taker != operation->cc->rank)
            coll_add_need(operation,
                          coll_add_send(operation, COLL_LANE_WORK, COLL_STREAM_TOKENS, NULL, 0,
                                        MPI_BYTE, taker),
                          came);
    }
}

/*
 * The pieces that wait for each piece, in order: those for piece k have the places from first[k] up
 * to, but not including, first[k + 1] behind first[pieces]. NULL if there is no memory.
 */
static int *sort_by_first(const struct pattern_plan *plan) {
    const int pieces = plan->pieces;
    int *first = calloc((size_t)(pieces + 1 + plan->waits), sizeof *first);
    if (first == NULL)
        return NULL;
    for (int i = 0; i < plan->waits; ++i)
        ++first[plan->wait[i].first + 1];
    for (int i = 0; i < pieces; ++i)
        first[i + 1] += first[i];
    for (int i = 0; i < plan->waits; ++i)
        first[pieces + 1 + first[plan->wait[i].first]++] = plan->wait[i].then;
    for (int i = pieces; i > 0; --i)
        first[i] = first[i - 1];
    first[0] = 0;
    return first;
}

/* Every message starts when those before it on its links have arrived, as their receivers tell. */
static int add_tokens(const struct part *part, const struct pattern_plan *plan,
                      const int64_t *facts) {
    struct coll_operation *operation = part->operation;
    const int rank = operation->cc->rank;
    int *first_of = sort_by_first(plan);
    int *came = malloc((size_t)plan->pieces * sizeof *came);
    if (first_of == NULL || came == NULL) {
        free(first_of);
        free(came);
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < plan->pieces; ++i) {
        came[i] = -1;
        if (plan->piece[i].to != rank)
            continue;
        came[i] = add_received(part, &plan->piece[i], facts).last;
        add_owed(part, plan, i, came[i], first_of);
    }
    for (int i = 0, next = 0; i < plan->pieces; ++i) {
        if (plan->piece[i].from != rank) {
            while (next < plan->waits && plan->wait[next].then == i)
                ++next;
            continue;
        }
        const int step = add_sent(part, &plan->piece[i], facts).first;
        for (; next < plan->waits && plan->wait[next].then == i; ++next) {
            const int first = plan->wait[next].first, giver = plan->piece[first].to;
            coll_add_need(operation, step,
                          giver == rank
                              ? came[first]
                              : coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_TOKENS,
                                                 NULL, 0, MPI_BYTE, giver));
        }
    }
    free(first_of);
    free(came);
    return MPI_SUCCESS;
}

/* In place, what is sent lies where other data arrives: send from a copy. */
static int copy_sent(struct part *part, struct sides *sides, const int64_t *facts) {
    struct coll_operation *operation = part->operation;
    const int p = operation->cc->size;
    const struct coll_blocks *blocks = &operation->call.recv_blocks;
    MPI_Aint low = 0, high = 0;
    int none = 1;
    for (int rank = 0; rank < p; ++rank) {
        const MPI_Aint start = coll_place_of(blocks, rank) * sides->recv_stride;
        const MPI_Aint end = start + (MPI_Aint)facts[FACTS + rank];
        if (rank == operation->cc->rank || end == start) /* which may be anywhere */
            continue;
        low = none || start < low ? start : low;
        high = none || end > high ? end : high;
        none = 0;
    }
    COLL_TRY(coll_allocate(high - low, &operation->scratch));
    for (int rank = 0; rank < p; ++rank) {
        const MPI_Aint start = coll_place_of(blocks, rank) * sides->recv_stride;
        if (rank != operation->cc->rank && facts[FACTS + rank] > 0)
            coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, sides->recv + start,
                          operation->scratch + (start - low), (MPI_Aint)facts[FACTS + rank]);
    }
    sides->send = operation->scratch - low;
    return MPI_SUCCESS;
}

/* A rank's own block through memory: MPICH 4.3.2 refuses a message for it, see coll_copy(). */
static int copy_packed(const struct coll_operation *operation, const struct coll_step *step) {
    const MPI_Comm comm = operation->plans->comm;
    MPI_Count position = 0;
    COLL_TRY(PMPI_Pack_c(step->from, 1, operation->own_types[0], operation->scratch, step->count,
                         &position, comm));
    position = 0;
    return PMPI_Unpack_c(operation->scratch, step->count, &position, step->to, 1,
                         operation->own_types[1], comm);
}

/* So many elements as one of a type of ours: the application may free its own. */
static int keep_type(MPI_Count count, MPI_Datatype type, MPI_Datatype *kept) {
    COLL_TRY(PMPI_Type_contiguous_c(count, type, kept));
    return PMPI_Type_commit(kept);
}

/* A rank's own block: bytes, or packed on its way where there are none alone. */
static int add_own(const struct part *part, const int64_t *facts) {
    struct coll_operation *operation = part->operation;
    const struct coll_call *call = &operation->call;
    const int rank = operation->cc->rank;
    const MPI_Aint bytes = (MPI_Aint)facts[FACTS + rank];
    coll_work *work = coll_copy_bytes;
    if (part->sides->in_place || bytes == 0)
        return MPI_SUCCESS;
    if (!facts[IS_PLAIN]) {
        COLL_TRY(keep_type(coll_send_count(call, rank), part->sides->send_type,
                           &operation->own_types[0]));
        COLL_TRY(keep_type(coll_recv_count(call, rank), part->sides->recv_type,
                           &operation->own_types[1]));
        COLL_TRY(coll_allocate(bytes, &operation->scratch));
        work = copy_packed;
    }
    coll_add_work(operation, COLL_LANE_FIRST, work, sent_block(part, rank),
                  received_block(part, rank), bytes);
    return MPI_SUCCESS;
}

static int add_all(struct coll_operation *operation, struct sides *sides, const struct told *told,
                   const struct pattern_plan *plan, const int64_t *facts) {
    const int windowed = told->kind == COLL_PLAN_WINDOW;
    struct part part = {.operation = operation,
                        .sides = sides,
                        .told = told,
                        .send_lane = windowed ? COLL_LANE_RECEIVES : COLL_LANE_SENDS};
    if (sides->in_place)
        COLL_TRY(copy_sent(&part, sides, facts));
    COLL_TRY(add_own(&part, facts));
    if (!windowed)
        return add_tokens(&part, plan, facts);
    add_window(&part, plan, facts);
    return MPI_SUCCESS;
}

/* The facts of all ranks on rank 0, the schedule from there, and this rank's part of it. */
static int exchange(struct coll_operation *operation, int64_t *facts, int *found) {
    const struct coll_comm *cc = operation->cc;
    const int each = FACTS + 2 * cc->size;
    struct sides sides;
    struct told told = {.kind = COLL_PLAN_NATIVE};
    struct pattern_plan plan = {0};
    facts[KIND] = coll_plan_kind();
    int error = describe(operation, &sides, facts);
    facts[IS_WRONG] |= error != MPI_SUCCESS;
    error = PMPI_Gather(facts, each, MPI_INT64_T, facts + each, each, MPI_INT64_T, 0,
                        operation->plans->comm);
    if (error == MPI_SUCCESS && cc->rank == 0)
        make(cc, facts + each, &told, &plan);
    if (error == MPI_SUCCESS)
        error = tell(operation, &told, &plan);
    if (error == MPI_SUCCESS && told.kind != COLL_PLAN_NATIVE) {
        *found = 1;
        error = add_all(operation, &sides, &told, &plan, facts);
    }
    coll_pattern_free(&plan);
    return error;
}

int coll_plan_exchange(struct coll_operation *operation, const struct coll_routine *routine,
                       int *found) {
    const struct coll_comm *cc = operation->cc;
    const enum coll_collective collective = operation->call.collective;
    const int is_forced = coll_settings()->forced[collective] == coll_native[collective];
    const size_t each = FACTS + 2 * (size_t)cc->size;
    int all = 0;
    (void)routine; /* a schedule needs none, unless the MPI library's is asked for by name */
    if (cc->kind < COLL_KIND_HOSTS)
        return MPI_SUCCESS;
    int64_t *facts = calloc(each * (size_t)(cc->rank == 0 ? cc->size + 1 : 1), sizeof *facts);
    int error = coll_all_agree(operation, facts != NULL && !is_forced, &all);
    if (error == MPI_SUCCESS && all)
        error = exchange(operation, facts, found);
    free(facts);
    return error;
}

#endif
