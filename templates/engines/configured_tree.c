/*
 * A tree whose nodes, and the ranks that do their work, are in tables (Bongo, Anshus and
 * Bjørndalen, §3).
 *
 * No rank waits for another but to receive, and a rank does the work of its nodes in their order.
 * What it waits for comes from a node before its own. So no two ranks wait for each other, whatever
 * the tree.
 */
#include <stdlib.h>
#include <string.h>

#include "configured_tree.h"
#include "shared_channels.h"

/* Tags: of operands, those of nodes each with its own from FIRST on; of results; to the root. */
enum { OPERAND = COLL_TAG_DATA, AT_ROOT = COLL_TAG_COPY, RESULT = COLL_TAG_TOKEN, FIRST = 16 };

/* Up to so many bytes, all receives of a rank are posted before it sends anything. */
enum { AHEAD_MOST = 8192 };

/* Where the value of a node begins: at this rank's own operand, or at the first that comes. */
enum { OWN = -1, COMES = -2 };

/* A message from, or to, another rank. */
struct link {
    int rank; /* MPI_PROC_NULL: none */
    int tag;
    int node;                       /* of this rank, that the message is for or from; see NODES */
    int name;                       /* of the contributor at the other end */
    unsigned passed;                /* messages that went through the channel */
    struct shared_channel *channel; /* NULL: MPI's messages */
};

/* A node whose work this rank does. */
struct work {
    int node;
    int base;          /* OWN, COMES, or the work whose value it goes on with */
    int inner, inners; /* further works of this rank that contribute */
    int first, end;    /* contributions that come */
    int room;          /* of what comes first, where receives are not posted ahead */
    struct link up;
    int above; /* the node that it contributes to, if this rank does its work, too; else -1 */
};

/*
 * NODES: with TRACE=1, each call tells the stamps of its nodes (docs/inspect.md). The node k of the
 * tables has the number cc->size + k. A rank whose operand goes to another rank is a node of its
 * own, with its number. As a contributor, a node n has the name -1 - n.
 *
 * Where the root of a reduce or a bcast is another rank than that of the tree, it is a node above
 * the tree's root, with the number after that one's. The tree's root tells AT_CALLS_ROOT with the
 * stamp of this edge.
 */
enum { INSIDE = 0, AT_CALLS_ROOT = 1 };

static int number_of(const struct coll_comm *cc, int node) {
    return cc->size + node;
}

static int name_of(int number) {
    return -1 - number;
}

/* What a rank has to do: found at its first call, and kept with the communicator. */
struct plan {
    int made;
    int shares; /* whether channels were asked for */
    int works, arrivals, downs;
    int begun;          /* works with base COMES */
    int root;           /* the rank that has the result first */
    int top;            /* the tree's root, a node */
    struct link own;    /* where the own operand goes */
    struct link result; /* where the result comes from */
    struct work *work;
    struct link *arrival;
    struct link *down;
    int *inner;
    struct shared_channel **channels; /* of the ranks of this host; NULL: none */

    /* Of a call. */
    char **value;          /* [work] */
    MPI_Request *receives; /* [arrival] */
    MPI_Request *sends;
    int requests; /* of both */
};

static const struct link nobody = {.rank = MPI_PROC_NULL, .node = -1};

static int is_rank(const struct coll_comm *cc, int contributor) {
    return contributor < cc->size;
}

/* The position that hands over a contributor's operand. */
static int giver_of(const struct coll_comm *cc, const struct configured_tree *tree,
                    int contributor) {
    return is_rank(cc, contributor) ? contributor : tree->worker[contributor - cc->size];
}

/* The number of a contributor that is a node: one of the tables, or a rank. */
static int number_of_contributor(const struct coll_comm *cc, int contributor) {
    return is_rank(cc, contributor) ? cc->rank_of[contributor] : contributor;
}

/* From or to a position, of what a contributor has for a node. */
static struct link link_to(const struct coll_comm *cc, int position, int contributor, int node) {
    return (struct link){.rank = cc->rank_of[position],
                         .tag = is_rank(cc, contributor) ? OPERAND : FIRST + contributor - cc->size,
                         .node = number_of(cc, node),
                         .name = name_of(number_of_contributor(cc, contributor))};
}

static int work_of(const struct plan *plan, int node) {
    int work = 0;
    while (plan->work[work].node != node)
        ++work;
    return work;
}

/* Add the node to what this rank does; its contributors are known. */
static void add_work(struct plan *plan, const struct coll_comm *cc,
                     const struct configured_tree *tree, int node) {
    const int here = cc->position_of[cc->rank];
    struct work *work = &plan->work[plan->works++];
    const int before = plan->works > 1 ? work[-1].inner + work[-1].inners : 0;
    *work = (struct work){.node = node,
                          .base = COMES,
                          .inner = before,
                          .first = plan->arrivals,
                          .up = nobody,
                          .above = -1};
    for (int i = tree->first[node]; i < tree->first[node + 1]; ++i) {
        const int one = tree->contributor[i], giver = giver_of(cc, tree, one);
        if (one == here)
            work->base = OWN;
        else if (giver == here) {
            const int inner = work_of(plan, one - cc->size);
            plan->inner[work->inner + work->inners++] = inner;
            plan->work[inner].above = node;
        } else
            plan->arrival[plan->arrivals++] = link_to(cc, giver, one, node);
    }
    work->end = plan->arrivals;
    if (work->base == COMES && work->inners > 0) {
        work->base = plan->inner[work->inner];
        plan->inner[work->inner] = plan->inner[work->inner + --work->inners];
    }
    if (work->base == COMES)
        work->room = ++plan->begun;
}

/* Where this rank's operand goes, and the values of the nodes that it works for. */
static void find_way_up(struct plan *plan, const struct coll_comm *cc,
                        const struct configured_tree *tree) {
    const int here = cc->position_of[cc->rank];
    for (int node = 0; node < tree->nodes; ++node) {
        if (tree->worker[node] == here) {
            add_work(plan, cc, tree, node);
            continue;
        }
        for (int i = tree->first[node]; i < tree->first[node + 1]; ++i) {
            const int one = tree->contributor[i];
            if (giver_of(cc, tree, one) != here)
                continue;
            const struct link to = link_to(cc, tree->worker[node], one, node);
            *(is_rank(cc, one) ? &plan->own : &plan->work[work_of(plan, one - cc->size)].up) = to;
        }
    }
}

/* From the root down: which rank sends this one the result, and which ranks it sends it to. */
static void find_way_down(struct plan *plan, const struct coll_comm *cc,
                          const struct configured_tree *tree, char *has) {
    const int here = cc->position_of[cc->rank];
    has[tree->worker[tree->nodes - 1]] = 1;
    for (int node = tree->nodes - 1; node >= 0; --node) {
        const int worker = tree->worker[node];
        for (int i = tree->first[node]; i < tree->first[node + 1]; ++i) {
            const int one = tree->contributor[i], to = giver_of(cc, tree, one);
            const int number = number_of_contributor(cc, one);
            if (has[to])
                continue;
            has[to] = 1;
            if (worker == here)
                plan->down[plan->downs++] = (struct link){.rank = cc->rank_of[to],
                                                          .tag = RESULT,
                                                          .node = number_of(cc, node),
                                                          .name = name_of(number)};
            if (to == here)
                plan->result =
                    (struct link){.rank = cc->rank_of[worker], .tag = RESULT, .node = number};
        }
    }
}

/* The most that any rank can have to do; the memory is a few numbers for each contributor. */
static size_t bytes_of_plan(const struct coll_comm *cc, const struct configured_tree *tree) {
    const size_t nodes = (size_t)tree->nodes, size = (size_t)cc->size;
    const size_t links = nodes + 2 * size, requests = links + nodes + 2;
    return sizeof(struct plan) + nodes * sizeof(struct work) + links * sizeof(struct link) +
           nodes * sizeof(char *) + requests * sizeof(MPI_Request) + nodes * sizeof(int) + size;
}

static void make_plan(struct plan *plan, const struct coll_comm *cc,
                      const struct configured_tree *tree) {
    plan->work = (struct work *)(plan + 1);
    plan->arrival = (struct link *)(plan->work + tree->nodes);
    plan->down = plan->arrival + tree->nodes + cc->size;
    plan->value = (char **)(plan->down + cc->size);
    plan->receives = (MPI_Request *)(plan->value + tree->nodes);
    plan->inner = (int *)(plan->receives + 2 * tree->nodes + 2 * cc->size + 2);
    char *has = (char *)(plan->inner + tree->nodes);
    plan->top = tree->nodes - 1;
    plan->root = cc->rank_of[tree->worker[plan->top]];
    plan->own = plan->result = nobody;
    find_way_up(plan, cc, tree);
    find_way_down(plan, cc, tree, has);
    plan->sends = plan->receives + plan->arrivals;
    plan->requests = plan->arrivals + plan->works + plan->downs + 2;
    plan->made = 1;
}

static int is_here(const struct coll_comm *cc, int rank) {
    const int place = cc->place_of[rank];
    return place >= cc->first_place[cc->host] && place < cc->first_place[cc->host + 1];
}

/*
 * The channel on which a rank of this host reads what a contributor hands over, by its number: the
 * operands from this host in the order of the tables, then, for `contributor` -1, the result.
 */
static int channel_of(const struct coll_comm *cc, const struct configured_tree *tree, int reader,
                      int contributor) {
    const int here = cc->position_of[reader];
    int number = 0;
    for (int node = 0; node < tree->nodes; ++node) {
        for (int i = tree->first[node]; i < tree->first[node + 1]; ++i) {
            const int one = tree->contributor[i], giver = giver_of(cc, tree, one);
            if (tree->worker[node] != here || giver == here || !is_here(cc, cc->rank_of[giver]))
                continue;
            if (one == contributor)
                return number;
            ++number;
        }
    }
    return number;
}

/* What a link hands over: the inverse of link_to; -1 for the result. */
static int contributor_of(const struct coll_comm *cc, const struct link *link, int giver) {
    if (link->tag == OPERAND)
        return cc->position_of[giver];
    return link->tag == RESULT ? -1 : link->tag - FIRST + cc->size;
}

/* Let a link between ranks of this host go through its channel. */
static void share(const struct plan *plan, const struct coll_comm *cc,
                  const struct configured_tree *tree, struct link *link, int giver, int reader) {
    if (link->rank == MPI_PROC_NULL || !is_here(cc, link->rank))
        return;
    const int number = channel_of(cc, tree, reader, contributor_of(cc, link, giver));
    link->channel = plan->channels[cc->place_of[reader] - cc->first_place[cc->host]] + number;
}

/* Make the channels, at the first call that asks for them: all ranks do. */
static int make_channels(struct plan *plan, const struct coll_comm *cc,
                         const struct configured_tree *tree) {
    const int me = cc->rank;
    COLL_TRY(coll_shared_channels(cc, channel_of(cc, tree, me, -1) + 1, &plan->channels));
    plan->shares = 1;
    if (plan->channels == NULL)
        return MPI_SUCCESS;
    for (int i = 0; i < plan->arrivals; ++i)
        share(plan, cc, tree, &plan->arrival[i], plan->arrival[i].rank, me);
    for (int i = 0; i < plan->works; ++i)
        share(plan, cc, tree, &plan->work[i].up, me, plan->work[i].up.rank);
    for (int i = 0; i < plan->downs; ++i)
        share(plan, cc, tree, &plan->down[i], me, plan->down[i].rank);
    share(plan, cc, tree, &plan->own, me, plan->own.rank);
    share(plan, cc, tree, &plan->result, plan->result.rank, me);
    free(plan->channels);
    plan->channels = NULL;
    return MPI_SUCCESS;
}

/* A call along the tree. */
struct run {
    const struct coll_call *call;
    const struct coll_comm *cc;
    struct plan *plan;
    int count; /* of elements in a message */
    MPI_Datatype type;
    int shared;              /* whether ranks of a host go through channels, where there are any */
    int dense;               /* whether elements are plain bytes */
    int ahead;               /* whether all receives are posted at first */
    struct coll_elements in; /* room for what comes */
    int sent;
};

static int has_data(const struct run *run) {
    return run->count > 0;
}

/* Where what comes has its room; barriers have no data. */
static char *room(const struct run *run, int number) {
    return has_data(run) ? coll_element(run->call, run->in.data, (MPI_Aint)number * run->count)
                         : NULL;
}

static int is_shared(const struct run *run, const struct link *link) {
    return run->shared && link->channel != NULL;
}

/* The data of a message in a channel is packed. */
static int write_channel(struct run *run, struct link *to, const char *data) {
    const int bytes = (int)run->call->bytes;
    int at = 0;
    COLL_TRY(coll_shared_begin(run->cc, to->channel, ++to->passed));
    if (has_data(run) && run->dense)
        memcpy(to->channel->data, data, (size_t)bytes);
    else if (has_data(run))
        COLL_TRY(PMPI_Pack(data, run->count, run->type, to->channel->data, SHARED_CHANNEL_MOST, &at,
                           run->cc->comm));
    coll_shared_wrote(to->channel, to->passed);
    return MPI_SUCCESS;
}

/* To `data` from a channel, where the message has come. */
static int read_channel(struct run *run, struct link *from, char *data) {
    const int bytes = (int)run->call->bytes;
    int at = 0;
    if (has_data(run) && run->dense)
        memcpy(data, from->channel->data, (size_t)bytes);
    else if (has_data(run))
        COLL_TRY(PMPI_Unpack(from->channel->data, bytes, &at, data, run->count, run->type,
                             run->cc->comm));
    coll_shared_took(from->channel, from->passed);
    return MPI_SUCCESS;
}

static int send(struct run *run, struct link *to, const char *data) {
    if (to->rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (is_shared(run, to))
        return write_channel(run, to, data);
    return PMPI_Isend(data, run->count, run->type, to->rank, to->tag, run->cc->comm,
                      &run->plan->sends[run->sent++]);
}

static int await_channel(struct run *run, struct link *from) {
    return coll_shared_await(run->cc, from->channel, ++from->passed);
}

static int receive(struct run *run, struct link *from, char *data) {
    if (is_shared(run, from)) {
        COLL_TRY(await_channel(run, from));
        return read_channel(run, from, data);
    }
    return PMPI_Recv(data, run->count, run->type, from->rank, from->tag, run->cc->comm,
                     MPI_STATUS_IGNORE);
}

/* Wait for all that was sent. */
static int complete(struct run *run) {
    const int sent = run->sent;
    run->sent = 0;
    return coll_complete(run->plan->sends, 0, sent, MPI_SUCCESS);
}

static int post_receives(struct run *run) {
    for (int i = 0; i < run->plan->arrivals; ++i) {
        const struct link *from = &run->plan->arrival[i];
        if (is_shared(run, from))
            continue;
        COLL_TRY(PMPI_Irecv(room(run, i), run->count, run->type, from->rank, from->tag,
                            run->cc->comm, &run->plan->receives[i]));
    }
    return MPI_SUCCESS;
}

static void tell_in(const struct link *from) {
    coll_event(COLL_EVENT_NODE_IN, from->name, from->node);
}

/* Wait for a posted receive. If events are kept, all that come before it are told at once. */
static int await_message(struct run *run, int arrival) {
    const struct plan *plan = run->plan;
    MPI_Request *receives = plan->receives;
    if (!coll_keeps_events())
        return PMPI_Wait(&receives[arrival], MPI_STATUS_IGNORE);
    while (receives[arrival] != MPI_REQUEST_NULL) {
        int which;
        COLL_TRY(PMPI_Waitany(plan->arrivals, receives, &which, MPI_STATUS_IGNORE));
        tell_in(&plan->arrival[which]);
    }
    return MPI_SUCCESS;
}

/*
 * Tell what came before this rank's own operand: messages that wait for their receives. Without
 * receives, there is no look: the MPI library would go to the network for nothing.
 */
static int tell_early(struct run *run) {
    const struct plan *plan = run->plan;
    for (int come = plan->arrivals > 0, which = 0; come && which != MPI_UNDEFINED;) {
        COLL_TRY(PMPI_Testany(plan->arrivals, plan->receives, &which, &come, MPI_STATUS_IGNORE));
        if (come && which != MPI_UNDEFINED)
            tell_in(&plan->arrival[which]);
    }
    return MPI_SUCCESS;
}

/* The last work whose value takes in those of a work and of all works between; or itself. */
static int last_with(const struct plan *plan, int number) {
    const struct work *work = plan->work;
    int last = number, above = -1;
    for (int next = number + 1; next < plan->works && work[next - 1].above >= 0; ++next) {
        if (above < work[next - 1].above)
            above = work[next - 1].above;
        if (above == work[next].node)
            last = next;
    }
    return last;
}

/*
 * A rank that waits for a flag does not see messages. But a channel keeps when it was written. So,
 * if events are kept, messages are awaited first: all without which this rank cannot hand on the
 * value of this work. None of them needs what this rank has still to send: all works up to the last
 * one here hand on to each other.
 */
static int await_messages(struct run *run, int number) {
    const struct plan *plan = run->plan;
    const struct work *last = &plan->work[last_with(plan, number)];
    for (int i = plan->work[number].first; i < last->end; ++i)
        if (!is_shared(run, &plan->arrival[i]))
            COLL_TRY(await_message(run, i));
    return MPI_SUCCESS;
}

/* Wait for a contribution of a work; *data is where it is. */
static int take(struct run *run, const struct work *work, int arrival, char **data) {
    struct link *from = &run->plan->arrival[arrival];
    const int begins = work->base == COMES && arrival == work->first;
    *data = room(run, run->ahead ? arrival : begins ? work->room : 0);
    if (is_shared(run, from)) {
        COLL_TRY(await_channel(run, from));
        coll_event_at(COLL_EVENT_NODE_IN, from->name, from->node, from->channel->written_at);
        return read_channel(run, from, *data);
    }
    if (run->ahead)
        return await_message(run, arrival);
    COLL_TRY(receive(run, from, *data));
    tell_in(from);
    return MPI_SUCCESS;
}

/* The own operand is there, at a node of this rank or to be sent. */
static void tell_begin(const struct run *run) {
    const struct plan *plan = run->plan;
    const int me = run->cc->rank;
    for (int i = 0; i < plan->works; ++i)
        if (plan->work[i].base == OWN)
            coll_event(COLL_EVENT_NODE_IN, me, number_of(run->cc, plan->work[i].node));
    if (plan->own.rank == MPI_PROC_NULL)
        return;
    coll_event(COLL_EVENT_NODE_IN, me, me);
    coll_event(COLL_EVENT_NODE_UP, INSIDE, me);
}

/* A node hands on what it has; the tree's root does not, but to the call's root (see below). */
static void tell_up(const struct run *run, const struct work *work) {
    const int number = number_of(run->cc, work->node);
    if (work->up.rank == MPI_PROC_NULL && work->above < 0)
        return;
    coll_event(COLL_EVENT_NODE_UP, INSIDE, number);
    if (work->above >= 0)
        coll_event(COLL_EVENT_NODE_IN, name_of(number), number_of(run->cc, work->above));
}

/* The node by which this rank has the result first; of the tree's root it is that one. */
static int node_of_result(const struct run *run) {
    const struct plan *plan = run->plan;
    return plan->result.rank != MPI_PROC_NULL ? plan->result.node : number_of(run->cc, plan->top);
}

/* The call's root, as the node above the tree's root. */
static int node_above(const struct run *run) {
    return number_of(run->cc, run->plan->top + 1);
}

/* A reduce: the tree's root sends the result to the call's root, which then has it. */
static void tell_up_to_root(const struct run *run) {
    coll_event(COLL_EVENT_NODE_UP, AT_CALLS_ROOT, number_of(run->cc, run->plan->top));
}

static void tell_in_at_root(const struct run *run) {
    coll_event(COLL_EVENT_NODE_IN, name_of(number_of(run->cc, run->plan->top)), node_above(run));
}

/* A bcast: the call's root sends the data to the tree's root, which then has it. */
static void tell_out_of_root(const struct run *run) {
    coll_event(COLL_EVENT_NODE_OUT, name_of(number_of(run->cc, run->plan->top)), node_above(run));
}

static void tell_down_from_root(const struct run *run) {
    coll_event(COLL_EVENT_NODE_DOWN, AT_CALLS_ROOT, number_of(run->cc, run->plan->top));
}

/* The call's root has the data itself. So this rank's first node has it from that node. */
static void tell_own_at_root(const struct run *run) {
    const int by = node_of_result(run);
    coll_event(COLL_EVENT_NODE_OUT, name_of(by), node_above(run));
    coll_event(COLL_EVENT_NODE_DOWN, INSIDE, by);
}

/*
 * This rank has the result, by one of its nodes: it came, or that is the root. So its other nodes
 * have it, each from the node above it, or from the first if that is at another rank; and so has a
 * rank that is a node of its own.
 */
static void tell_down(const struct run *run, int has_come) {
    const struct plan *plan = run->plan;
    const int me = run->cc->rank, is_leaf = plan->own.rank != MPI_PROC_NULL;
    const int by = node_of_result(run);
    if (has_come)
        coll_event(COLL_EVENT_NODE_DOWN, INSIDE, by);
    for (int i = plan->works - 1; i >= 0; --i) {
        const struct work *work = &plan->work[i];
        const int number = number_of(run->cc, work->node);
        if (number == by)
            continue;
        coll_event(COLL_EVENT_NODE_OUT, name_of(number),
                   work->above < 0 ? by : number_of(run->cc, work->above));
        coll_event(COLL_EVENT_NODE_DOWN, INSIDE, number);
    }
    if (is_leaf && by != me) {
        coll_event(COLL_EVENT_NODE_OUT, name_of(me), by);
        coll_event(COLL_EVENT_NODE_DOWN, INSIDE, me);
    }
}

/* This rank ends the call with the result. */
static void tell_end(const struct run *run) {
    const struct plan *plan = run->plan;
    const int me = run->cc->rank;
    for (int i = 0; i < plan->works; ++i)
        if (plan->work[i].base == OWN)
            coll_event(COLL_EVENT_NODE_OUT, me, number_of(run->cc, plan->work[i].node));
    if (plan->own.rank != MPI_PROC_NULL)
        coll_event(COLL_EVENT_NODE_OUT, me, me);
}

static int fold(struct run *run, char *theirs, char *mine) {
    if (!has_data(run))
        return MPI_SUCCESS;
    return coll_fold(run->call, run->cc, theirs, mine, run->count, 1);
}

/* Combine what contributes to a node, and pass it on. */
static int do_work(struct run *run, int number) {
    struct work *work = &run->plan->work[number];
    char *value = work->base == OWN ? run->call->recv : NULL;
    int next = work->first;
    if (run->ahead && run->shared && coll_keeps_events())
        COLL_TRY(await_messages(run, number));
    if (work->base >= 0)
        value = run->plan->value[work->base];
    if (work->base == COMES)
        COLL_TRY(take(run, work, next++, &value));
    for (int i = work->inner; i < work->inner + work->inners; ++i)
        COLL_TRY(fold(run, run->plan->value[run->plan->inner[i]], value));
    for (; next < work->end; ++next) {
        char *data;
        COLL_TRY(take(run, work, next, &data));
        COLL_TRY(fold(run, data, value));
    }
    run->plan->value[number] = value;
    tell_up(run, work);
    return send(run, &work->up, value);
}

/* Operands up to the root of the tree, where *value is the result; elsewhere NULL. */
static int go_up(struct run *run, char **value) {
    struct plan *plan = run->plan;
    if (run->ahead)
        COLL_TRY(post_receives(run));
    if (run->ahead && coll_keeps_events())
        COLL_TRY(tell_early(run));
    tell_begin(run);
    COLL_TRY(send(run, &plan->own, run->call->recv));
    for (int number = 0; number < plan->works; ++number)
        COLL_TRY(do_work(run, number));
    *value = run->cc->rank == plan->root ? run->plan->value[plan->works - 1] : NULL;
    return complete(run);
}

/* The result down from the ranks that have it; `but` has it already. */
static int go_down(struct run *run, int but) {
    struct plan *plan = run->plan;
    char *data = run->call->recv;
    const int comes = plan->result.rank != MPI_PROC_NULL && run->cc->rank != but;
    if (comes)
        COLL_TRY(receive(run, &plan->result, data));
    tell_down(run, comes);
    for (int i = 0; i < plan->downs; ++i) {
        struct link *to = &plan->down[i];
        if (to->rank == but)
            continue;
        coll_event(COLL_EVENT_NODE_OUT, to->name, to->node);
        COLL_TRY(send(run, to, data));
    }
    COLL_TRY(complete(run));
    tell_end(run);
    return MPI_SUCCESS;
}

/* Bring the result to where the application wants it. */
static int keep(struct run *run, char *value) {
    if (value == NULL || value == run->call->recv || !has_data(run))
        return MPI_SUCCESS;
    return coll_copy_elements(run->call, run->cc, value, run->call->recv, run->count);
}

static int allreduce(struct run *run) {
    char *value;
    COLL_TRY(go_up(run, &value));
    COLL_TRY(keep(run, value));
    return go_down(run, MPI_PROC_NULL);
}

static int reduce(struct run *run) {
    struct link there = {.rank = run->call->root, .tag = AT_ROOT};
    struct link here = {.rank = run->plan->root, .tag = AT_ROOT};
    char *value;
    COLL_TRY(go_up(run, &value));
    if (here.rank == there.rank)
        return keep(run, value);
    if (run->cc->rank == here.rank) {
        tell_up_to_root(run);
        COLL_TRY(send(run, &there, value));
    }
    if (run->cc->rank == there.rank) {
        COLL_TRY(receive(run, &here, run->call->recv));
        tell_in_at_root(run);
    }
    return complete(run);
}

/* The message goes to the root of the tree first, and down from both. */
static int bcast(struct run *run) {
    struct link there = {.rank = run->call->root, .tag = AT_ROOT};
    struct link here = {.rank = run->plan->root, .tag = AT_ROOT};
    if (here.rank != there.rank) {
        if (run->cc->rank == there.rank) {
            tell_out_of_root(run);
            COLL_TRY(send(run, &here, run->call->recv));
            tell_own_at_root(run);
        }
        if (run->cc->rank == here.rank) {
            COLL_TRY(receive(run, &there, run->call->recv));
            tell_down_from_root(run);
        }
    }
    return go_down(run, there.rank);
}

/* Take the steps, with no more room for what comes than they need. */
static int with_room(struct run *run, int steps(struct run *run), int combines) {
    const struct plan *plan = run->plan;
    const int rooms = !combines ? 0 : run->ahead ? plan->arrivals : plan->begun + 1;
    for (int i = 0; i < plan->requests; ++i)
        plan->receives[i] = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
    if (has_data(run) && rooms > 0)
        error = coll_elements_for(run->call, (MPI_Count)rooms * run->count, &run->in);
    if (error == MPI_SUCCESS)
        error = steps(run);
    if (error != MPI_SUCCESS)
        coll_abandon(plan->receives, plan->arrivals, plan->requests - plan->arrivals);
    else /* else sends that were left to MPI may still read it */
        free(run->in.memory);
    return error;
}

/*
 * Some rank has no memory for its part of the tree, and all ranks know it. So the data goes from
 * rank to rank, and a rank needs room only for what it receives.
 */
static int along_a_line(const struct coll_call *call, const struct coll_comm *cc, int count,
                        MPI_Datatype type, int up, int down) {
    const int end = up && down ? 0 : call->root, place = (cc->rank - end + cc->size) % cc->size;
    const int before = place == 0 ? MPI_PROC_NULL : (cc->rank - 1 + cc->size) % cc->size;
    const int after = place == cc->size - 1 ? MPI_PROC_NULL : (cc->rank + 1) % cc->size;
    const int comes = up && after != MPI_PROC_NULL, folds = comes && count > 0;
    struct coll_elements in = {0};
    if (folds)
        COLL_TRY(coll_elements_for(call, count, &in));
    int error = MPI_SUCCESS;
    if (comes)
        error = PMPI_Recv(in.data, count, type, after, OPERAND, cc->comm, MPI_STATUS_IGNORE);
    if (folds && error == MPI_SUCCESS)
        error = coll_fold(call, cc, in.data, call->recv, count, 1);
    free(in.memory);
    COLL_TRY(error);
    if (up)
        COLL_TRY(PMPI_Send(call->recv, count, type, before, OPERAND, cc->comm));
    if (down)
        COLL_TRY(PMPI_Recv(call->recv, count, type, before, RESULT, cc->comm, MPI_STATUS_IGNORE));
    return down ? PMPI_Send(call->recv, count, type, after, RESULT, cc->comm) : MPI_SUCCESS;
}

static int along(const struct coll_call *call, const struct coll_comm *cc,
                 const struct configured_tree *tree, int on_host, int count, MPI_Datatype type,
                 int steps(struct run *run), int combines) {
    void *kept;
    COLL_TRY(coll_comm_agreed_state(cc, tree->owner, bytes_of_plan(cc, tree), &kept));
    struct plan *plan = kept;
    if (plan == NULL)
        return along_a_line(call, cc, count, type, combines, steps != reduce);
    if (!plan->made)
        make_plan(plan, cc, tree);
    struct run run = {.call = call, .cc = cc, .plan = plan, .count = count, .type = type};
    run.ahead = combines && call->bytes <= AHEAD_MOST;
    run.shared = on_host == CONFIGURED_TREE_SHARED && call->bytes <= SHARED_CHANNEL_MOST;
    if (run.shared && !plan->shares)
        COLL_TRY(make_channels(plan, cc, tree));
    if (run.shared)
        COLL_TRY(coll_is_dense(type, &run.dense));
    return with_room(&run, steps, combines);
}

int coll_configured_tree_allreduce(const struct coll_call *call, const struct coll_comm *cc,
                                   const struct configured_tree *tree, int on_host) {
    return along(call, cc, tree, on_host, call->recv_count, call->recv_type, allreduce, 1);
}

int coll_configured_tree_reduce(const struct coll_call *call, const struct coll_comm *cc,
                                const struct configured_tree *tree, int on_host) {
    return along(call, cc, tree, on_host, call->recv_count, call->recv_type, reduce, 1);
}

int coll_configured_tree_bcast(const struct coll_call *call, const struct coll_comm *cc,
                               const struct configured_tree *tree, int on_host) {
    return along(call, cc, tree, on_host, (int)call->bytes, MPI_PACKED, bcast, 0);
}

int coll_configured_tree_barrier(const struct coll_call *call, const struct coll_comm *cc,
                                 const struct configured_tree *tree, int on_host) {
    return along(call, cc, tree, on_host, 0, MPI_BYTE, allreduce, 1);
}
