/*
 * The steps of a persistent collective: made one after the other at its init, then put in order.
 */
#include <stdlib.h>
#include <string.h>

#include "persistent.h"

#ifdef COLL_PERSISTENT

enum { ROOM = 64 };

static void *larger(void *memory, int count, int *room, size_t size) {
    if (count < *room)
        return memory;
    const int wanted = *room == 0 ? ROOM : 2 * *room;
    void *moved = realloc(memory, (size_t)wanted * size);
    if (moved != NULL)
        *room = wanted;
    return moved;
}

/* One more step at the end of a lane, or -1 after an error. */
static int add(struct coll_operation *operation, int lane, const struct coll_step *step) {
    struct coll_lane *own = &operation->lanes[lane];
    if (operation->error != MPI_SUCCESS)
        return -1;
    void *steps = larger(operation->steps, operation->count, &operation->room, sizeof *step);
    operation->steps = steps == NULL ? operation->steps : steps;
    int *numbers = larger(own->steps, own->count, &own->room, sizeof *numbers);
    own->steps = numbers == NULL ? own->steps : numbers;
    if (steps == NULL || numbers == NULL) {
        operation->error = MPI_ERR_NO_MEM;
        return -1;
    }
    operation->steps[operation->count] = *step;
    own->steps[own->count++] = operation->count;
    return operation->count++;
}

static void free_request(MPI_Request *request) {
    if (*request != MPI_REQUEST_NULL)
        PMPI_Request_free(request);
}

/* The same for a message, whose request is freed after an error. */
static int add_message(struct coll_operation *operation, int lane, struct coll_step *step) {
    const int number = add(operation, lane, step);
    if (number < 0)
        free_request(&step->request);
    return number;
}

int coll_add_send(struct coll_operation *operation, int lane, enum coll_stream stream,
                  const void *data, MPI_Count count, MPI_Datatype type, int to) {
    struct coll_step step = {.request = MPI_REQUEST_NULL};
    if (operation->error == MPI_SUCCESS)
        operation->error = PMPI_Send_init_c(data, count, type, to, operation->tag + (int)stream,
                                            operation->plans->comm, &step.request);
    return add_message(operation, lane, &step);
}

int coll_add_receive(struct coll_operation *operation, int lane, enum coll_stream stream,
                     void *data, MPI_Count count, MPI_Datatype type, int from) {
    struct coll_step step = {
        .request = MPI_REQUEST_NULL, .receives = 1, .row = from * COLL_STREAMS + (int)stream};
    if (operation->error == MPI_SUCCESS)
        operation->error = PMPI_Recv_init_c(data, count, type, from, operation->tag + (int)stream,
                                            operation->plans->comm, &step.request);
    return add_message(operation, lane, &step);
}

int coll_add_work(struct coll_operation *operation, int lane, coll_work *work, const void *from,
                  void *to, MPI_Aint count) {
    const struct coll_step step = {
        .request = MPI_REQUEST_NULL, .work = work, .from = from, .to = to, .count = count};
    return add(operation, lane, &step);
}

int coll_copy_bytes(const struct coll_operation *operation, const struct coll_step *step) {
    (void)operation;
    memmove(step->to, step->from, (size_t)step->count);
    return MPI_SUCCESS;
}

/* A step starts only when another one is complete. */
void coll_add_need(struct coll_operation *operation, int step, int needed) {
    if (operation->error != MPI_SUCCESS || step < 0 || needed < 0)
        return;
    int *pairs =
        larger(operation->pairs, operation->pair_count + 1, &operation->pair_room, sizeof *pairs);
    if (pairs == NULL) {
        operation->error = MPI_ERR_NO_MEM;
        return;
    }
    operation->pairs = pairs;
    pairs[operation->pair_count++] = needed;
    pairs[operation->pair_count++] = step;
    ++operation->steps[step].needs;
}

/* Put the needs in the order of the steps that are needed. */
static int sort_needs(struct coll_operation *operation) {
    operation->thens = malloc(((size_t)operation->pair_count / 2 + 1) * sizeof *operation->thens);
    operation->running = malloc(((size_t)operation->count + 1) * sizeof *operation->running);
    if (operation->thens == NULL || operation->running == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < operation->pair_count; i += 2)
        ++operation->steps[operation->pairs[i]].thens;
    for (int i = 0, first = 0; i < operation->count; ++i) {
        operation->steps[i].first_then = first;
        first += operation->steps[i].thens;
        operation->steps[i].thens = 0;
    }
    for (int i = 0; i < operation->pair_count; i += 2) {
        struct coll_step *needed = &operation->steps[operation->pairs[i]];
        operation->thens[needed->first_then + needed->thens++] = operation->pairs[i + 1];
    }
    free(operation->pairs);
    operation->pairs = NULL;
    return MPI_SUCCESS;
}

/* Put each receive behind the one before it from the same rank in the same stream. */
static int put_in_rows(struct coll_operation *operation) {
    const size_t rows = (size_t)operation->cc->size * COLL_STREAMS;
    int *last = malloc(rows * sizeof *last);
    if (last == NULL)
        return MPI_ERR_NO_MEM;
    for (size_t row = 0; row < rows; ++row)
        last[row] = -1;
    for (int i = 0; i < operation->count; ++i) {
        struct coll_step *step = &operation->steps[i];
        step->before = step->next = -1;
        if (!step->receives)
            continue;
        step->before = last[step->row];
        last[step->row] = i;
        if (step->before >= 0)
            operation->steps[step->before].next = i;
    }
    free(last);
    return MPI_SUCCESS;
}

int coll_order_steps(struct coll_operation *operation) {
    COLL_TRY(sort_needs(operation));
    return put_in_rows(operation);
}

void coll_free_steps(struct coll_operation *operation) {
    for (int i = 0; i < operation->count; ++i)
        free_request(&operation->steps[i].request);
    for (int lane = 0; lane < COLL_LANES; ++lane)
        free(operation->lanes[lane].steps);
    free(operation->steps);
    free(operation->pairs);
    free(operation->thens);
    free(operation->running);
}

#endif
