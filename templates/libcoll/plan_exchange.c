/*
 * The plan of a persistent alltoall or alltoallv. Ranks add up what they send, from which all see
 * whether there can be one. Then the counts of all ranks are gathered, unless they are equal, rank
 * 0 makes the schedule (pattern.c) and tells it to all, and every rank takes its part of it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "pattern.h"
#include "plans.h"

#ifdef COLL_PERSISTENT

/*
 * Unless LIBCOLL_PERSISTENT says more, shorter messages in the mean are for the MPI library: those
 * of fewer bytes, or that take less than so many microseconds on the slowest host's link: a token
 * takes some 50 over TCP. So are more messages than the scheduler orders in a second. Pieces of the
 * schedule have so many bytes, or take so many microseconds; and a rank has so many under way.
 */
enum {
    AVERAGE_LEAST = 16384,
    AVERAGE_MICROSECONDS = 500,
    MESSAGES_MOST = 20000,
    SEGMENT = 4096,
    SEGMENT_MICROSECONDS = 50,
    UNDER_WAY = 16
};

/* What rank 0 tells of the schedule. */
struct told {
    int choice; /* enum coll_plan_choice */
    int pieces, waits;
    MPI_Aint chunk; /* bytes of a message; 0: messages are whole */
};

/* The blocks of this rank's call. */
struct sides {
    const char *send;
    char *recv;
    MPI_Aint send_stride, recv_stride;
    MPI_Datatype send_type, recv_type;
    MPI_Count send_size, recv_size; /* bytes of an element */
    int in_place, plain;            /* plain: no type has gaps */
};

/* What an element of a datatype has of bytes, and whether these are all that there is. */
static int look_at(MPI_Datatype type, MPI_Count *size, int *plain) {
    int dense;
    COLL_TRY(coll_is_dense(type, &dense));
    *plain &= dense;
    return PMPI_Type_size_x(type, size);
}

static int describe(const struct coll_call *call, struct sides *sides) {
    const int uneven = coll_descriptors[call->collective].uneven;
    *sides = (struct sides){.send = call->sendbuf,
                            .recv = call->recvbuf,
                            .send_type = call->send_type,
                            .recv_type = call->recv_type,
                            .in_place = call->sendbuf == MPI_IN_PLACE,
                            .plain = 1};
    if (sides->in_place) {
        sides->send = sides->recv;
        sides->send_type = sides->recv_type;
    }
    COLL_TRY(look_at(sides->send_type, &sides->send_size, &sides->plain));
    COLL_TRY(look_at(sides->recv_type, &sides->recv_size, &sides->plain));
    COLL_TRY(coll_extent(uneven ? 1 : call->recv_count, sides->recv_type, &sides->recv_stride));
    sides->send_stride = sides->recv_stride;
    if (sides->in_place)
        return sides->plain ? MPI_SUCCESS : MPI_ERR_TYPE;
    return coll_extent(uneven ? 1 : call->send_count, sides->send_type, &sides->send_stride);
}

static int64_t bytes_for(const struct coll_call *call, const struct sides *sides, int rank) {
    const MPI_Count count =
        sides->in_place ? coll_recv_count(call, rank) : coll_send_count(call, rank);
    return (int64_t)(count * sides->send_size);
}

static int64_t bytes_from(const struct coll_call *call, const struct sides *sides, int rank) {
    return (int64_t)(coll_recv_count(call, rank) * sides->recv_size);
}

static int is_even(const struct coll_call *call) {
    return !coll_descriptors[call->collective].uneven;
}

/* Whether there may be a plan, from what every rank knows of all: alike on all ranks. */
int coll_may_exchange(const struct coll_call *call, const struct coll_comm *cc) {
    const int is_forced =
        coll_settings()->forced[call->collective] == coll_native[call->collective];
    return cc->kind >= COLL_KIND_HOSTS && !is_forced &&
           !(is_even(call) && (double)cc->size * (cc->size - 1) > MESSAGES_MOST);
}

/* What this rank adds to the sums of all. */
int coll_sum_exchange(const struct coll_call *call, const struct coll_comm *cc, double *sums) {
    struct sides sides;
    COLL_TRY(describe(call, &sides));
    sums[COLL_SUM_GAPS] = !sides.plain;
    for (int rank = 0; rank < cc->size; ++rank) {
        const int64_t bytes = rank == cc->rank ? 0 : bytes_for(call, &sides, rank);
        sums[COLL_SUM_MESSAGES] += bytes > 0;
        sums[COLL_SUM_BYTES] += (double)bytes;
    }
    return MPI_SUCCESS;
}

/* The host at a place of the depth-first order of all hosts. */
static int host_at(int place) {
    int host = 0;
    while (coll_cluster_place_of(host) != place)
        ++host;
    return host;
}

/* The bytes that the slowest link of the hosts carries in a time; alike on all ranks. */
static double bytes_in(const struct coll_comm *cc, int microseconds) {
    struct pattern_tree tree;
    int first_host;
    long long slowest = LLONG_MAX; /* bit/s */
    coll_cluster_tree(&tree, &first_host);
    for (int h = 0; h < cc->hosts; ++h) {
        const long long rate = tree.rates[first_host + host_at(cc->host_place[h])];
        slowest = rate < slowest ? rate : slowest;
    }
    return (double)slowest / 8 * microseconds / 1e6;
}

/* The plan that the sums of all ranks ask for. */
enum coll_plan_choice coll_judge_exchange(const struct coll_comm *cc, const double *sums) {
    const double pairs = (double)cc->size * (cc->size - 1);
    const enum coll_plan_choice choice = coll_least_choice(sums);
    if (sums[COLL_SUM_MESSAGES] == 0 || sums[COLL_SUM_MESSAGES] > MESSAGES_MOST)
        return COLL_PLAN_NATIVE;
    if (choice != COLL_PLAN_AUTO)
        return choice;
    if (cc->hosts == 1) /* messages use no link */
        return COLL_PLAN_NATIVE;
    const double average = sums[COLL_SUM_BYTES] / pairs;
    return average < AVERAGE_LEAST || average < bytes_in(cc, AVERAGE_MICROSECONDS)
               ? COLL_PLAN_NATIVE
               : COLL_PLAN_TOKENS;
}

/*
 * Put the bytes of all messages together, from those for each rank and from each that every rank
 * has told; 0 if some are not the same at both ends. Those of an even call are known everywhere.
 */
static int collect(const struct coll_call *call, const int64_t *facts, int p, int64_t *bytes) {
    for (int from = 0; from < p; ++from)
        for (int to = 0; to < p; ++to) {
            const int64_t sent = is_even(call) ? facts[0] : facts[2 * (int64_t)from * p + to];
            const int64_t received = is_even(call) ? sent : facts[(2 * (int64_t)to + 1) * p + from];
            bytes[(int64_t)from * p + to] = sent;
            if (sent != received)
                return 0;
        }
    return 1;
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

/* Bytes of a piece at least: many enough that starting it costs little beside its way. */
static MPI_Aint segment_of(const struct coll_comm *cc) {
    const MPI_Aint bytes = (MPI_Aint)bytes_in(cc, SEGMENT_MICROSECONDS);
    return bytes < SEGMENT ? SEGMENT : bytes / SEGMENT * SEGMENT;
}

static int schedule(const struct coll_comm *cc, const int64_t *bytes, int plain, int choice,
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
    told->chunk = plain ? coll_chunk(segment_of(cc), most_of(bytes, cc->size)) : 0;
    const int64_t segment = plain ? told->chunk : INT64_MAX / 4;
    const int made = coll_pattern_schedule(&pattern, segment, choice == COLL_PLAN_TOKENS, plan);
    free(host);
    return made;
}

/* On rank 0: the schedule, if there is to be one. */
static void make(const struct coll_operation *operation, const int64_t *facts, struct told *told,
                 struct pattern_plan *plan) {
    const struct coll_comm *cc = operation->cc;
    const int choice = coll_judge_exchange(cc, operation->sums);
    const int plain = operation->sums[COLL_SUM_GAPS] == 0;
    int64_t *bytes = malloc((size_t)cc->size * (size_t)cc->size * sizeof *bytes);
    *told = (struct told){.choice = COLL_PLAN_NATIVE};
    if (bytes != NULL && collect(&operation->call, facts, cc->size, bytes) &&
        schedule(cc, bytes, plain, choice, told, plan)) {
        told->choice = choice;
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
    if (told->choice == COLL_PLAN_NATIVE)
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
        told->choice = COLL_PLAN_NATIVE;
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
    return part->sides->send + coll_displacement_of(blocks, to) * part->sides->send_stride;
}

static char *received_block(const struct part *part, int from) {
    return part->sides->recv + coll_displacement_of(&part->operation->call.recv_blocks, from) *
                                   part->sides->recv_stride;
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
    return add_piece(part, piece, 1, piece->to, facts[piece->to], count);
}

static struct steps add_received(const struct part *part, const struct pattern_piece *piece,
                                 const int64_t *facts) {
    return add_piece(part, piece, 0, piece->from, facts[part->operation->cc->size + piece->from],
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
 * to, but not including, first[k + 1] after first[pieces]. NULL if there is no memory.
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

/*
 * Every message starts when those before it on its links have arrived, as their receivers tell. All
 * that a rank receives, tokens too, is in the order of the schedule. So the first message of all
 * that is not complete can go on, however few receives are posted: of what its two ranks receive
 * before it, all is complete.
 */
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
    for (int i = 0, next = 0; i < plan->pieces; ++i) {
        int own = next;
        while (next < plan->waits && plan->wait[next].then == i)
            ++next;
        came[i] = -1;
        if (plan->piece[i].to == rank) {
            came[i] = add_received(part, &plan->piece[i], facts).last;
            add_owed(part, plan, i, came[i], first_of);
        }
        if (plan->piece[i].from != rank)
            continue;
        const int step = add_sent(part, &plan->piece[i], facts).first;
        for (; own < next; ++own) {
            const int first = plan->wait[own].first, giver = plan->piece[first].to;
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
        const MPI_Aint start = coll_displacement_of(blocks, rank) * sides->recv_stride;
        const MPI_Aint end = start + (MPI_Aint)facts[rank];
        if (rank == operation->cc->rank || end == start) /* which may be anywhere */
            continue;
        low = none || start < low ? start : low;
        high = none || end > high ? end : high;
        none = 0;
    }
    COLL_TRY(coll_allocate(high - low, &operation->scratch));
    for (int rank = 0; rank < p; ++rank) {
        const MPI_Aint start = coll_displacement_of(blocks, rank) * sides->recv_stride;
        if (rank != operation->cc->rank && facts[rank] > 0)
            coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, sides->recv + start,
                          operation->scratch + (start - low), (MPI_Aint)facts[rank]);
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
    const MPI_Aint bytes = (MPI_Aint)facts[rank];
    coll_work *work = coll_copy_bytes;
    if (part->sides->in_place || bytes == 0)
        return MPI_SUCCESS;
    if (!part->sides->plain) {
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
    const int windowed = told->choice == COLL_PLAN_WINDOW;
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
static int exchange(struct coll_operation *operation, struct sides *sides, int64_t *facts,
                    int *found) {
    const int p = operation->cc->size, gathers = !is_even(&operation->call);
    struct told told = {.choice = COLL_PLAN_NATIVE};
    struct pattern_plan plan = {0};
    int error = MPI_SUCCESS;
    if (gathers)
        error = PMPI_Gather(facts, 2 * p, MPI_INT64_T, facts + 2 * (size_t)p, 2 * p, MPI_INT64_T, 0,
                            operation->plans->comm);
    if (error == MPI_SUCCESS && operation->cc->rank == 0)
        make(operation, facts + (gathers ? 2 * (size_t)p : 0), &told, &plan);
    if (error == MPI_SUCCESS)
        error = tell(operation, &told, &plan);
    if (error == MPI_SUCCESS && told.choice != COLL_PLAN_NATIVE) {
        *found = 1;
        error = add_all(operation, sides, &told, &plan, facts);
    }
    coll_pattern_free(&plan);
    return error;
}

/*
 * The bytes for each rank and from each; NULL if the call is wrong as far as this rank can see, or
 * there is no memory. Rank 0 gets room for those of all ranks, unless these are equal.
 */
static int64_t *tell_apart(const struct coll_operation *operation, struct sides *sides) {
    const struct coll_comm *cc = operation->cc;
    const struct coll_call *call = &operation->call;
    const int gathers = cc->rank == 0 && !is_even(call);
    const size_t each = 2 * (size_t)cc->size;
    if (describe(call, sides) != MPI_SUCCESS ||
        (is_even(call) && (bytes_for(call, sides, 0) != bytes_from(call, sides, 0) ||
                           (double)bytes_for(call, sides, 0) * cc->size * (cc->size - 1) !=
                               operation->sums[COLL_SUM_BYTES])))
        return NULL;
    int64_t *facts = calloc(each * (size_t)(gathers ? cc->size + 1 : 1), sizeof *facts);
    for (int rank = 0; rank < cc->size && facts != NULL; ++rank) {
        facts[rank] = bytes_for(call, sides, rank);
        facts[cc->size + rank] = bytes_from(call, sides, rank);
    }
    return facts;
}

int coll_plan_exchange(struct coll_operation *operation, const struct coll_routine *routine,
                       int *found) {
    struct sides sides;
    int all = 0;
    (void)routine; /* a schedule needs none, unless the MPI library's is asked for by name */
    int64_t *facts = tell_apart(operation, &sides);
    int error = coll_all_agree(operation, facts != NULL, &all);
    if (error == MPI_SUCCESS && all)
        error = exchange(operation, &sides, facts, found);
    free(facts);
    return error;
}

#endif
