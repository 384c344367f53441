/* What all plans share, and the plans of allgather and allgatherv. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"
#include "plans.h"

#ifdef COLL_PERSISTENT

/* A rank has at most about so many messages in each direction. */
enum { CHUNKS = 2048 };

static const char VARIABLE[] = "LIBCOLL_PERSISTENT";

/* Its values, by enum coll_plan_choice. */
static const char *const choices[] = {"native", "auto", "window", "tokens"};

static void complain(void) {
    coll_complain(VARIABLE, getenv(VARIABLE), "expected auto, window, tokens or native");
}

enum coll_plan_choice coll_plan_choice(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *value = getenv(VARIABLE);
    if (value == NULL || value[0] == '\0')
        return COLL_PLAN_AUTO;
    for (int i = 0; i < (int)(sizeof choices / sizeof *choices); ++i)
        if (strcmp(value, choices[i]) == 0)
            return (enum coll_plan_choice)i;
    pthread_once(&once, complain);
    return COLL_PLAN_AUTO;
}

MPI_Aint coll_chunk(MPI_Aint least, MPI_Aint bytes) {
    const MPI_Aint wanted = bytes / CHUNKS;
    return (wanted + least - 1) / least * least + (wanted == 0 ? least : 0);
}

/* Steps of a routine serve one collective each, so only those of an allreduce ask for more. */
static int may_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                         const struct coll_routine *routine) {
    const int doubles = routine->steps == COLL_STEPS_DOUBLING && (cc->size & (cc->size - 1)) == 0;
    const int on_ring = routine->steps == COLL_STEPS_RING && call->recv_count >= cc->size;
    return doubles || on_ring;
}

int coll_may_plan(const struct coll_call *call, const struct coll_comm *cc,
                  const struct coll_routine *routine, coll_planner *planner) {
    /* Plans combine operands in an order of their own. */
    if (cc->no_plans || call->ordered || routine->constraints & COLL_FIXED_ORDER)
        return 0;
    if (planner == coll_plan_exchange)
        return coll_may_exchange(call, cc);
    if (planner == coll_plan_allreduce)
        return may_allreduce(call, cc, routine);
    return routine->steps != COLL_STEPS_NONE;
}

enum coll_plan_choice coll_least_choice(const double *sums) {
    int choice = COLL_PLAN_NATIVE;
    while (choice < COLL_PLAN_TOKENS && sums[COLL_SUM_CHOICES + choice] == 0)
        ++choice;
    return (enum coll_plan_choice)choice;
}

/* Said by one process, the first time that these ranks see it. */
static void complain_of_difference(const struct coll_comm *cc, const double *sums) {
    static atomic_int seen;
    const enum coll_plan_choice least = coll_least_choice(sums);
    if (sums[COLL_SUM_CHOICES + (int)least] < cc->size && !atomic_exchange(&seen, 1) &&
        cc->rank == 0)
        fprintf(stderr, "libcoll: %s differs between ranks: %s counts for all\n", VARIABLE,
                choices[least]);
}

/* Over the private communicator, or that of the application until there is one. */
static int add_up(MPI_Comm comm, const struct coll_comm *cc, double *sums) {
    MPI_Errhandler handler;
    if (cc->comm != MPI_COMM_NULL)
        return PMPI_Allreduce(MPI_IN_PLACE, sums, COLL_SUMS, MPI_DOUBLE, MPI_SUM, cc->comm);
    COLL_TRY(coll_begin_quiet(comm, &handler));
    const int error = PMPI_Allreduce(MPI_IN_PLACE, sums, COLL_SUMS, MPI_DOUBLE, MPI_SUM, comm);
    COLL_TRY(coll_end_quiet(comm, &handler));
    return error;
}

int coll_sum_up(const struct coll_call *call, const struct coll_comm *cc, coll_planner *planner,
                int unable, double *sums, int *possible) {
    const int exchanges = planner == coll_plan_exchange;
    for (int i = 0; i < COLL_SUMS; ++i)
        sums[i] = 0;
    sums[COLL_SUM_CHOICES + (int)coll_plan_choice()] = 1;
    if (unable || (exchanges && coll_sum_exchange(call, cc, sums) != MPI_SUCCESS))
        sums[COLL_SUM_UNABLE] = 1;
    *possible = 0;
    COLL_TRY(add_up(call->comm, cc, sums));
    if (sums[COLL_SUM_UNABLE] == 0)
        complain_of_difference(cc, sums);
    const enum coll_plan_choice choice =
        exchanges ? coll_judge_exchange(cc, sums) : coll_least_choice(sums);
    *possible = sums[COLL_SUM_UNABLE] == 0 && choice != COLL_PLAN_NATIVE;
    return MPI_SUCCESS;
}

int coll_all_agree(const struct coll_operation *operation, int yes, int *all) {
    int mine = yes && coll_plan_choice() != COLL_PLAN_NATIVE;
    return PMPI_Allreduce(&mine, all, 1, MPI_INT, MPI_MIN, operation->plans->comm);
}

int coll_line_rank(const struct coll_comm *cc, int place) {
    const int wrapped = (place % cc->size + cc->size) % cc->size;
    return cc->kind >= COLL_KIND_HOSTS ? cc->order[wrapped] : wrapped;
}

int coll_line_place(const struct coll_comm *cc, int rank) {
    return cc->kind >= COLL_KIND_HOSTS ? cc->place_of[rank] : rank;
}

/* The blocks of an allgather in the receive buffer, as plain bytes. */
struct gathered {
    const struct coll_call *call;
    MPI_Aint size; /* of an element */
};

static char *block_of(const struct gathered *gathered, int rank) {
    const struct coll_call *call = gathered->call;
    const MPI_Aint stride = coll_is_uneven(&call->recv_blocks)
                                ? gathered->size
                                : gathered->size * (MPI_Aint)call->recv_count;
    return (char *)call->recvbuf + coll_displacement_of(&call->recv_blocks, rank) * stride;
}

static MPI_Aint bytes_of(const struct gathered *gathered, int rank) {
    return (MPI_Aint)coll_recv_count(gathered->call, rank) * gathered->size;
}

/*
 * The logical ring: a rank passes on what came last. Blocks go in chunks, so that a long one does
 * not hold the others up.
 */
static void add_ring(struct coll_operation *operation, const struct gathered *gathered,
                     MPI_Aint chunk) {
    const struct coll_comm *cc = operation->cc;
    const int place = coll_line_place(cc, cc->rank);
    const int to = coll_line_rank(cc, place + 1), from = coll_line_rank(cc, place - 1);
    for (int step = 0; step < cc->size; ++step) {
        const int rank = coll_line_rank(cc, place - step);
        const MPI_Aint bytes = bytes_of(gathered, rank);
        char *block = block_of(gathered, rank);
        for (MPI_Aint start = 0, number = 0; start < bytes; start += chunk, ++number) {
            const MPI_Aint length = bytes - start < chunk ? bytes - start : chunk;
            int came = -1;
            if (step > 0)
                came = coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA,
                                        block + start, length, MPI_BYTE, from);
            if (step < cc->size - 1)
                coll_add_need(operation,
                              coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA,
                                            block + start, length, MPI_BYTE, to),
                              came);
        }
    }
}

/* Each block goes to each rank at once. */
static void add_direct(struct coll_operation *operation, const struct gathered *gathered) {
    const struct coll_comm *cc = operation->cc;
    for (int distance = 1; distance < cc->size; ++distance) {
        const int from = (cc->rank - distance + cc->size) % cc->size;
        if (bytes_of(gathered, from) > 0)
            coll_add_receive(operation, COLL_LANE_RECEIVES, COLL_STREAM_DATA,
                             block_of(gathered, from), bytes_of(gathered, from), MPI_BYTE, from);
    }
    for (int distance = 1; distance < cc->size; ++distance)
        if (bytes_of(gathered, cc->rank) > 0)
            coll_add_send(operation, COLL_LANE_SENDS, COLL_STREAM_DATA,
                          block_of(gathered, cc->rank), bytes_of(gathered, cc->rank), MPI_BYTE,
                          (cc->rank + distance) % cc->size);
}

int coll_is_plain(MPI_Datatype type, MPI_Aint *size) {
    MPI_Count bytes;
    int dense;
    if (coll_is_dense(type, &dense) != MPI_SUCCESS || !dense ||
        PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED)
        return 0;
    *size = (MPI_Aint)bytes;
    return 1;
}

int coll_plan_gathered(struct coll_operation *operation, const struct coll_routine *routine,
                       int *found) {
    const struct coll_call *call = &operation->call;
    const struct coll_comm *cc = operation->cc;
    const int on_ring = routine->steps == COLL_STEPS_RING;
    const int is_direct = routine->steps == COLL_STEPS_DIRECT;
    struct gathered gathered = {.call = call};
    MPI_Aint sent = 0, all = 0;
    if (!on_ring && !is_direct)
        return MPI_SUCCESS;
    int plain = coll_is_plain(call->recv_type, &gathered.size) &&
                (call->sendbuf == MPI_IN_PLACE || coll_is_plain(call->send_type, &sent));
    if (plain && call->sendbuf != MPI_IN_PLACE)
        plain = (MPI_Aint)call->send_count * sent == bytes_of(&gathered, cc->rank);
    COLL_TRY(coll_all_agree(operation, plain, found));
    if (!*found)
        return MPI_SUCCESS;
    if (call->sendbuf != MPI_IN_PLACE && bytes_of(&gathered, cc->rank) > 0)
        coll_add_work(operation, COLL_LANE_FIRST, coll_copy_bytes, call->sendbuf,
                      block_of(&gathered, cc->rank), bytes_of(&gathered, cc->rank));
    for (int rank = 0; rank < cc->size; ++rank)
        all += bytes_of(&gathered, rank);
    if (on_ring)
        add_ring(operation, &gathered, coll_chunk(COLL_CHUNK, all));
    else
        add_direct(operation, &gathered);
    return MPI_SUCCESS;
}

#endif
