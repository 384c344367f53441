/* Messages of the routines as events: see messages.h. */
#define MESSAGES_UNTRACED
#include "messages.h"

#include <stdlib.h>
#include <string.h>

#ifndef COLL_TRACED
#define COLL_TRACED
#endif
#include "coll.h"

/*
 * Receives on their way, by their requests: where one ends, only the request tells whose message
 * has come. Where all entries for a request are taken, one of them goes to the later receive; the
 * earlier one is no event then.
 */
enum { PROBES = 16, FEW = 64 };

static unsigned hash_of(MPI_Request request) {
    uint64_t bits = 0;
    memcpy(&bits, &request, sizeof request);
    return (unsigned)(bits * 0x9E3779B97F4A7C15u >> 40);
}

/*
 * Find the entry of a request or, if `room` is set, a free one for it. Entries are taken in their
 * order, so it is in none after the first that this call has not used; what has ended leaves
 * MPI_REQUEST_NULL. *next says whether all entries are used: then it may be in the other table.
 */
static struct events_awaited *entry_in(struct events_awaited *table, unsigned size, uint64_t call,
                                       MPI_Request request, int room, int *next) {
    const unsigned first = hash_of(request);
    *next = 0;
    for (unsigned i = 0; i < PROBES; ++i) {
        struct events_awaited *one = &table[(first + i) % size];
        if (one->call != call)
            return room ? one : NULL;
        if (one->request == (room ? MPI_REQUEST_NULL : request))
            return one;
    }
    *next = 1;
    return NULL;
}

static struct events_awaited *entry_of(struct coll_events *events, MPI_Request request, int room) {
    int next;
    const uint64_t call = events->call_count;
    struct events_awaited *one =
        entry_in(events->awaited, EVENTS_AWAITED, call, request, room, &next);
    if (one != NULL || !next)
        return one;
    return entry_in(events->more, EVENTS_AWAITED_MORE, call, request, room, &next);
}

static void await(MPI_Request request, int from, int tag) {
    struct coll_events *events = coll_events_now;
    if (events == NULL || from == MPI_PROC_NULL || request == MPI_REQUEST_NULL)
        return;
    struct events_awaited *one = entry_of(events, request, 1);
    if (one == NULL)
        one = &events->more[hash_of(request) % EVENTS_AWAITED_MORE];
    *one = (struct events_awaited){request, from, tag, events->call_count};
}

static void sent(int to, int tag) {
    if (to != MPI_PROC_NULL)
        coll_event(COLL_EVENT_SENT, to, tag);
}

static void received(int from, int tag) {
    if (from != MPI_PROC_NULL)
        coll_event(COLL_EVENT_RECEIVED, from, tag);
}

/* A request has ended; any tag that was asked for is in the status. */
static void ended(MPI_Request request, const MPI_Status *status) {
    if (coll_events_now == NULL || request == MPI_REQUEST_NULL)
        return;
    struct events_awaited *one = entry_of(coll_events_now, request, 0);
    if (one == NULL)
        return;
    const int has_status = status != MPI_STATUS_IGNORE;
    received(one->from == MPI_ANY_SOURCE && has_status ? status->MPI_SOURCE : one->from,
             one->tag == MPI_ANY_TAG && has_status ? status->MPI_TAG : one->tag);
    one->request = MPI_REQUEST_NULL;
}

int coll_traced_send(const void *data, int count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm) {
    sent(to, tag);
    return PMPI_Send(data, count, type, to, tag, comm);
}

int coll_traced_recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status) {
    const int error = PMPI_Recv(data, count, type, from, tag, comm, status);
    received(from, tag);
    return error;
}

int coll_traced_isend(const void *data, int count, MPI_Datatype type, int to, int tag,
                      MPI_Comm comm, MPI_Request *request) {
    sent(to, tag);
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int coll_traced_issend(const void *data, int count, MPI_Datatype type, int to, int tag,
                       MPI_Comm comm, MPI_Request *request) {
    sent(to, tag);
    return PMPI_Issend(data, count, type, to, tag, comm, request);
}

int coll_traced_irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request) {
    const int error = PMPI_Irecv(data, count, type, from, tag, comm, request);
    if (error == MPI_SUCCESS)
        await(*request, from, tag);
    return error;
}

int coll_traced_sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                         void *in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                         MPI_Comm comm, MPI_Status *status) {
    sent(to, out_tag);
    const int error = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type,
                                    from, in_tag, comm, status);
    received(from, in_tag);
    return error;
}

int coll_traced_wait(MPI_Request *request, MPI_Status *status) {
    const MPI_Request before = *request;
    const int error = PMPI_Wait(request, status);
    ended(before, status);
    return error;
}

int coll_traced_test(MPI_Request *request, int *done, MPI_Status *status) {
    const MPI_Request before = *request;
    const int error = PMPI_Test(request, done, status);
    if (*done)
        ended(before, status);
    return error;
}

/*
 * Requests as they are now: those that end become MPI_REQUEST_NULL. NULL without memory, and where
 * the call keeps no events.
 */
static MPI_Request *copy_of(const MPI_Request *requests, int count, MPI_Request few[FEW]) {
    if (coll_events_now == NULL)
        return NULL;
    MPI_Request *copy = count <= FEW ? few : malloc((size_t)count * sizeof *copy);
    if (copy != NULL && count > 0)
        memcpy(copy, requests, (size_t)count * sizeof *copy);
    return copy;
}

static void give_back(MPI_Request *copy, const MPI_Request few[FEW]) {
    if (copy != few)
        free(copy);
}

int coll_traced_waitany(int count, MPI_Request *requests, int *which, MPI_Status *status) {
    MPI_Request few[FEW], *before = copy_of(requests, count, few);
    const int error = PMPI_Waitany(count, requests, which, status);
    if (before != NULL && *which != MPI_UNDEFINED)
        ended(before[*which], status);
    give_back(before, few);
    return error;
}

int coll_traced_testany(int count, MPI_Request *requests, int *which, int *done,
                        MPI_Status *status) {
    MPI_Request few[FEW], *before = copy_of(requests, count, few);
    const int error = PMPI_Testany(count, requests, which, done, status);
    if (before != NULL && *done && *which != MPI_UNDEFINED)
        ended(before[*which], status);
    give_back(before, few);
    return error;
}

/* When each of them ends is not known: all of them are events at the end. */
int coll_traced_waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
    MPI_Request few[FEW], *before = copy_of(requests, count, few);
    const int error = PMPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count && before != NULL; ++i)
        ended(before[i], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
    give_back(before, few);
    return error;
}

#if MPI_VERSION >= 4
int coll_traced_isend_c(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                        MPI_Comm comm, MPI_Request *request) {
    sent(to, tag);
    return PMPI_Isend_c(data, count, type, to, tag, comm, request);
}

int coll_traced_issend_c(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request *request) {
    sent(to, tag);
    return PMPI_Issend_c(data, count, type, to, tag, comm, request);
}

int coll_traced_irecv_c(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                        MPI_Comm comm, MPI_Request *request) {
    const int error = PMPI_Irecv_c(data, count, type, from, tag, comm, request);
    if (error == MPI_SUCCESS)
        await(*request, from, tag);
    return error;
}

int coll_traced_sendrecv_c(const void *out, MPI_Count out_count, MPI_Datatype out_type, int to,
                           int out_tag, void *in, MPI_Count in_count, MPI_Datatype in_type,
                           int from, int in_tag, MPI_Comm comm, MPI_Status *status) {
    sent(to, out_tag);
    const int error = PMPI_Sendrecv_c(out, out_count, out_type, to, out_tag, in, in_count, in_type,
                                      from, in_tag, comm, status);
    received(from, in_tag);
    return error;
}
#endif
