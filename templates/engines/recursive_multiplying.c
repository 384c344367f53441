/*
 * Recursive multiplying. The members are cut into as many runs as there are workers. The first of a
 * run is its worker; the others give it their operands before, and get the result afterwards. Runs
 * of workers are runs of members, so that operands stay in the order of the members.
 */
#include <stdlib.h>

#include "coll.h"
#include "recursive_multiplying.h"

struct team {
    const struct coll_call *call;
    const struct coll_comm *cc;
    struct multiplying_members all;
    int workers;
    int number; /* of this member's worker */
};

static int rank_at(const struct multiplying_members *all, int place) {
    if (all->order == NULL)
        return place;
    return all->order[all->first == NULL ? place : all->first[place]];
}

static int place_of_worker(const struct team *team, int number) {
    return (int)((long)team->all.count * number / team->workers);
}

static int is_worker(const struct team *team) {
    return team->all.place == place_of_worker(team, team->number);
}

/* The largest factor of n up to `most`; 1 if there is none. */
static int factor_of(int n, int most) {
    int factor = most < n ? most : n;
    while (n % factor != 0)
        --factor;
    return factor;
}

static int is_product(int n, int most) {
    while (n > 1 && factor_of(n, most) > 1)
        n /= factor_of(n, most);
    return n == 1;
}

/* The most workers whose number is a product of factors up to the radix: one for each step. */
static void choose_workers(struct team *team, int radix) {
    team->workers = team->all.count;
    while (!is_product(team->workers, radix))
        --team->workers;
    team->number = (int)((((long)team->all.place + 1) * team->workers - 1) / team->all.count);
}

static int send_to(const struct team *team, int place) {
    return PMPI_Send(team->call->recv, team->call->recv_count, team->call->recv_type,
                     rank_at(&team->all, place), COLL_TAG_DATA, team->cc->comm);
}

static int receive_from(const struct team *team, int place, char *to) {
    return PMPI_Recv(to, team->call->recv_count, team->call->recv_type, rank_at(&team->all, place),
                     COLL_TAG_DATA, team->cc->comm, MPI_STATUS_IGNORE);
}

/* The worker of a run gets the operands of the others. */
static int take_in(const struct team *team, char *room) {
    const struct coll_call *call = team->call;
    const int worker = place_of_worker(team, team->number);
    if (team->all.place != worker)
        return send_to(team, worker);
    for (int place = worker + 1; place < place_of_worker(team, team->number + 1); ++place) {
        COLL_TRY(receive_from(team, place, room));
        COLL_TRY(coll_fold(call, team->cc, room, call->recv, call->recv_count, 0));
    }
    return MPI_SUCCESS;
}

static int give_out(const struct team *team) {
    const int worker = place_of_worker(team, team->number);
    if (team->all.place != worker)
        return receive_from(team, worker, team->call->recv);
    for (int place = worker + 1; place < place_of_worker(team, team->number + 1); ++place)
        COLL_TRY(send_to(team, place));
    return MPI_SUCCESS;
}

/* Where the operands of a member of the group are, this one being that of number `digit` in it. */
static char *operands_of(const struct coll_call *call, char *room, int digit, int other) {
    const int slot = other < digit ? other : other - 1;
    return other == digit ? call->recv
                          : coll_element(call, room, (MPI_Aint)slot * call->recv_count);
}

/* All operands of the group, in an order that is the same on all, so that all get the same bits. */
static int combine(const struct team *team, char *room, int digit, int factor) {
    const struct coll_call *call = team->call;
    char *last = operands_of(call, room, digit, factor - 1);
    for (int other = factor - 2; other >= 0; --other)
        COLL_TRY(coll_fold(call, team->cc, operands_of(call, room, digit, other), last,
                           call->recv_count, 1));
    if (last == call->recv)
        return MPI_SUCCESS;
    return coll_copy_elements(call, team->cc, last, call->recv, call->recv_count);
}

/* Exchange all operands in a group of `factor` workers whose numbers are `stride` apart. */
static int exchange(const struct team *team, int factor, int stride, char *room,
                    MPI_Request *requests) {
    const struct coll_call *call = team->call;
    const int digit = team->number / stride % factor, others = factor - 1;
    int posted = 0, error = MPI_SUCCESS;
    for (int i = 0; i < 2 * others; ++i)
        requests[i] = MPI_REQUEST_NULL;
    for (int i = 1; i < factor && error == MPI_SUCCESS; ++i, ++posted) {
        const int other = (digit + i) % factor;
        const int place = place_of_worker(team, team->number + (other - digit) * stride);
        const int rank = rank_at(&team->all, place);
        error = PMPI_Irecv(operands_of(call, room, digit, other), call->recv_count, call->recv_type,
                           rank, COLL_TAG_DATA, team->cc->comm, &requests[posted]);
        if (error == MPI_SUCCESS)
            error = PMPI_Isend(call->recv, call->recv_count, call->recv_type, rank, COLL_TAG_DATA,
                               team->cc->comm, &requests[others + posted]);
    }
    COLL_TRY(coll_complete(requests, others, others, error));
    return combine(team, room, digit, factor);
}

static int multiply(const struct team *team, int radix, char *room, MPI_Request *requests) {
    COLL_TRY(take_in(team, room));
    for (int stride = 1; stride < team->workers;) {
        const int factor = factor_of(team->workers / stride, radix);
        if (is_worker(team))
            COLL_TRY(exchange(team, factor, stride, room, requests));
        stride *= factor;
    }
    return give_out(team);
}

int coll_recursive_multiplying(const struct coll_call *call, const struct coll_comm *cc,
                               const struct multiplying_members *members, int radix) {
    struct team team = {.call = call, .cc = cc, .all = *members};
    struct coll_elements room;
    choose_workers(&team, radix);
    COLL_TRY(coll_elements_for(call, (MPI_Count)(radix - 1) * call->recv_count, &room));
    MPI_Request *requests = malloc(2 * (size_t)radix * sizeof *requests);
    int error = MPI_ERR_NO_MEM;
    if (requests != NULL)
        error = multiply(&team, radix, room.data, requests);
    free(requests);
    free(room.memory);
    return error;
}
