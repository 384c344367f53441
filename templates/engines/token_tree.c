/*
 * A combining tree whose root can move to the rank that comes last (Mamidala, Liu and Panda 2004,
 * §4), over messages. With one token, each rank gets exactly these messages in a call:
 *
 *   from its parent   the token or the release
 *   from a child      the acknowledgement; if the token went there: the release from it and, if
 *                     they crossed, the acknowledgement before, which is received and ignored
 *
 * A branch is a child of place 0 with all below it. With a token for each branch, place 0 releases.
 * It gets one report of each branch, from the rank that has the branch's token by then. A rank that
 * got a token still gets the release from its parent, and answers its parent if it has not
 * acknowledged before. So other ranks get:
 *
 *   from their parent   the token, if any, then the release
 *   from a child        the acknowledgement, or the answer; if the token went there, it is ignored
 *
 * So none is left for the next call. Tags tell what a message is.
 *
 * With multicast, the rank that releases also tells all ranks at once. A rank that hears it passes
 * the release on along the tree, as if it had come from there, and leaves; the one from the tree
 * still comes. So a rank that has not heard gets it from its neighbour, and nobody waits for a rank
 * that left.
 */
#include <sched.h>
#include <stdlib.h>

#include "multicast.h"
#include "token_tree.h"

/*
 * Tags of messages. REPORT is of a whole branch, from any rank to place 0; or it answers a token,
 * and never goes to place 0, which passes none. FIRST and a place is a release, which names the
 * next root; as many tags from there on as there are ranks. The next ones are acknowledgements,
 * which name the last rank.
 */
enum { REPORT = 14, TOKEN = 15, FIRST = 16 };

/* The acknowledgement of a child was there before this rank was; it takes some probes to see it. */
enum { WAITS = 2, PROBES = 8 };

/* The most ranks that can remember: their places fit twice into the tags of every MPI library. */
enum { REMEMBERED_MOST = (32767 - FIRST) / 2 };

/* What is kept from call to call: where the root is at first. */
struct memory {
    int root;
};

struct node {
    const struct coll_call *call;
    const struct coll_comm *cc;
    MPI_Comm comm;               /* of the messages */
    struct multicast *multicast; /* or NULL */
    int moves;                   /* of enum token_moves */
    double patience;             /* seconds */
    struct memory *memory;
    int place;
    int children;              /* the parent, if any, has the number after them */
    int neighbours;            /* of both kinds */
    int *rank;                 /* [neighbour] */
    MPI_Request *receives;     /* [neighbour] */
    MPI_Request *sends;        /* [neighbour], of what may overlap with other messages */
    struct coll_elements room; /* for the data of every neighbour; at place 0, of every report */

    /* How far it is. */
    int missing;      /* children without acknowledgement */
    int reports;      /* that this rank has begun to receive; their numbers are as neighbours' */
    char *here;       /* [neighbour] whether its acknowledgement has come, or WAITS for this rank */
    int token;        /* whether this rank has, or had, a token */
    int acknowledged; /* whether this rank told its parent or, with a branch's token, place 0 */
    int heir;         /* the child that got the token, or -1 */
    int last;         /* the place of the rank that the others here waited for */
    double changed;   /* when the last message was handled */
    double began;     /* when the first acknowledgement was, or below 0 */
    double apart;     /* seconds from then to the last one */
};

/* A barrier has no data. */
static int count_of(const struct node *node) {
    return node->call->collective == COLL_BARRIER ? 0 : node->call->recv_count;
}

static MPI_Datatype type_of(const struct node *node) {
    return count_of(node) == 0 ? MPI_BYTE : node->call->recv_type;
}

static char *room_for(const struct node *node, int neighbour) {
    if (count_of(node) == 0)
        return NULL;
    return coll_element(node->call, node->room.data, (MPI_Aint)neighbour * count_of(node));
}

/* Whether this rank waits for reports of branches. */
static int takes_reports(const struct node *node) {
    return (node->moves & TOKEN_PER_BRANCH) && node->place == 0;
}

/* Whether this rank has, or had, a branch's token: it does not release. */
static int has_branch(const struct node *node) {
    return (node->moves & TOKEN_PER_BRANCH) && node->token && node->place > 0;
}

/* It is not known which ranks send reports: take_report receives them when they are there. */
static int expect(struct node *node, int neighbour) {
    if (takes_reports(node))
        return MPI_SUCCESS;
    return PMPI_Irecv(room_for(node, neighbour), count_of(node), type_of(node),
                      node->rank[neighbour], MPI_ANY_TAG, node->comm, &node->receives[neighbour]);
}

static int say(struct node *node, int neighbour, int tag, const char *data) {
    COLL_TRY(PMPI_Wait(&node->sends[neighbour], MPI_STATUS_IGNORE));
    return PMPI_Isend(data, count_of(node), type_of(node), node->rank[neighbour], tag, node->comm,
                      &node->sends[neighbour]);
}

/* The branch is complete. What this rank sent to its parent before has its request. */
static int report(struct node *node) {
    MPI_Request *send = &node->sends[node->children];
    COLL_TRY(PMPI_Wait(send, MPI_STATUS_IGNORE));
    return PMPI_Isend(node->call->recv, count_of(node), type_of(node), coll_rank_at(node->cc, 0),
                      REPORT, node->comm, send);
}

/* The parent waits for one message: an acknowledgement that crossed its token, or this one. */
static int answer(struct node *node, int parent) {
    COLL_TRY(PMPI_Wait(&node->sends[parent], MPI_STATUS_IGNORE));
    return PMPI_Isend(NULL, 0, MPI_BYTE, node->rank[parent], REPORT, node->comm,
                      &node->sends[parent]);
}

static int add(struct node *node, char *data) {
    if (count_of(node) == 0)
        return MPI_SUCCESS;
    return coll_fold(node->call, node->cc, data, node->call->recv, count_of(node), 1);
}

/* Send the result to all neighbours but one; it names the rank that released. */
static int release(struct node *node, int but, int tag) {
    node->memory->root = tag - FIRST;
    for (int i = node->neighbours - 1; i >= 0; --i)
        if (i != but)
            COLL_TRY(say(node, i, tag, node->call->recv));
    return MPI_SUCCESS;
}

/* Where the root is in the next call: here, if the token went to the last rank. */
static int next_root(const struct node *node) {
    if (!(node->moves & TOKEN_REMEMBERS))
        return 0;
    return node->moves & TOKEN_GOES ? node->place : node->last;
}

static int acknowledgement(const struct node *node) {
    return FIRST + node->cc->size + (node->moves & TOKEN_REMEMBERS ? node->last : 0);
}

static int is_release(const struct node *node, int tag) {
    return tag >= FIRST && tag < FIRST + node->cc->size;
}

static int has_parent(const struct node *node) {
    return node->neighbours > node->children;
}

/* The only child that is missing. */
static int missing_child(const struct node *node) {
    int child = 0;
    while (node->here[child])
        ++child;
    return child;
}

static int pass_token(struct node *node) {
    node->heir = missing_child(node);
    return say(node, node->heir, TOKEN, node->call->recv);
}

/* The token came from the parent, with what is to be combined. */
static int take_token(struct node *node, int parent) {
    node->token = 1;
    if (has_branch(node) && !node->acknowledged)
        COLL_TRY(answer(node, parent));
    /* An acknowledgement that crossed is ignored there: what was sent is still to be sent. */
    COLL_TRY(PMPI_Wait(&node->sends[parent], MPI_STATUS_IGNORE));
    COLL_TRY(add(node, room_for(node, parent)));
    if (!has_branch(node))
        return MPI_SUCCESS;
    node->acknowledged = 0;      /* from now on: by place 0 */
    return expect(node, parent); /* the release */
}

/* A token that came before this rank makes its acknowledgement needless. */
static int has_come(struct node *node, int *token) {
    MPI_Status status;
    *token = 0;
    if (!(node->moves & TOKEN_GOES))
        return MPI_SUCCESS;
    COLL_TRY(PMPI_Test(&node->receives[node->children], token, &status));
    return *token ? take_token(node, node->children) : MPI_SUCCESS;
}

/* What a rank does when its state has changed; *over if it has released. */
static int act(struct node *node, int *over) {
    if (node->missing > 0)
        return MPI_SUCCESS;
    if (node->token && !has_branch(node)) {
        const int tag = FIRST + next_root(node);
        *over = 1;
        if (node->multicast != NULL)
            coll_multicast_tell(node->multicast, tag, node->call->recv, count_of(node),
                                type_of(node));
        return release(node, -1, tag);
    }
    if (node->acknowledged)
        return MPI_SUCCESS;
    int has_token = 0;
    if (!node->token)
        COLL_TRY(has_come(node, &has_token));
    if (has_token)
        return act(node, over);
    node->acknowledged = 1;
    return has_branch(node) ? report(node)
                            : say(node, node->children, acknowledgement(node), node->call->recv);
}

/* Sends of the operands that the result replaces have ended, as it depends on them. */
static int await_operands(struct node *node, int from) {
    COLL_TRY(PMPI_Wait(&node->sends[from], MPI_STATUS_IGNORE));
    for (int i = 0; i < node->neighbours && count_of(node) > 0; ++i)
        COLL_TRY(PMPI_Wait(&node->sends[i], MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

/*
 * Messages of children that call together come one after the other, and each takes its time on the
 * link. So the last child is late only if it lets wait longer than the others came apart, unless
 * nobody is to wait at all.
 */
static double patience_of(const struct node *node) {
    return node->patience > 0 && node->apart > node->patience ? node->apart : node->patience;
}

/* A message of a neighbour has come. */
static int handle(struct node *node, int from, int tag, int *over) {
    const double now = PMPI_Wtime(), waited = now - node->changed;
    if (is_release(node, tag)) {
        *over = 1;
        COLL_TRY(await_operands(node, from));
        if (count_of(node) > 0)
            COLL_TRY(coll_copy_elements(node->call, node->cc, room_for(node, from),
                                        node->call->recv, count_of(node)));
        return release(node, from, tag);
    }
    if (from == node->heir) /* they crossed: the release comes from there, too */
        return has_branch(node) ? MPI_SUCCESS : expect(node, from);
    if (from == node->children && has_parent(node))
        return take_token(node, from);
    const int came_later = node->here[from] != WAITS && waited > patience_of(node);
    if (came_later && (node->moves & TOKEN_REMEMBERS))
        node->last = tag - FIRST - node->cc->size;
    if (node->began < 0)
        node->began = now;
    node->apart = now - node->began;
    node->here[from] = 1;
    --node->missing;
    COLL_TRY(add(node, room_for(node, from)));
    node->changed = PMPI_Wtime(); /* this rank was not waiting while it combined */
    return MPI_SUCCESS;
}

/*
 * Note which children wait for this rank: it did not wait for them, however long their data takes
 * from now on. Only the tree without a token, whose root moves from call to call, needs to know.
 */
static int see_who_waits(struct node *node) {
    if (!(node->moves & TOKEN_REMEMBERS) || (node->moves & TOKEN_GOES))
        return MPI_SUCCESS;
    for (int k = 0, found; k < PROBES * node->children; ++k) {
        const int i = k % node->children;
        COLL_TRY(PMPI_Iprobe(node->rank[i], MPI_ANY_TAG, node->comm, &found, MPI_STATUS_IGNORE));
        if (found)
            node->here[i] = WAITS;
    }
    node->changed = PMPI_Wtime();
    return MPI_SUCCESS;
}

/* Where the release comes from along the tree, if this rank does not release itself. */
static int before_release(const struct node *node) {
    return node->heir >= 0 && !has_branch(node) ? node->heir : node->children;
}

/* Whether there is nothing left to wait for but the release, which can be told to all. */
static int listens(const struct node *node) {
    return node->multicast != NULL &&
           (node->heir >= 0 || (node->acknowledged && (!node->token || has_branch(node))));
}

/*
 * The release along the tree may still be to come. If what the open receive got is the heir's
 * acknowledgement, which crossed, it needs another one: the heir must not wait for this rank.
 */
static int owe_release(struct node *node, int from) {
    MPI_Status status;
    int done;
    COLL_TRY(PMPI_Test(&node->receives[from], &done, &status));
    if (done && is_release(node, status.MPI_TAG))
        return MPI_SUCCESS;
    if (done)
        COLL_TRY(expect(node, from));
    coll_multicast_leave(node->multicast, &node->receives[from], &node->room.memory,
                         node->rank[from], FIRST, FIRST + node->cc->size);
    return MPI_SUCCESS;
}

/* The release was told to all: nobody along the tree waits for this rank when it leaves. */
static int leave_early(struct node *node, int tag) {
    const int from = before_release(node);
    COLL_TRY(await_operands(node, from));
    COLL_TRY(coll_multicast_take(node->multicast, node->call->recv, count_of(node), type_of(node)));
    COLL_TRY(release(node, from, tag));
    return owe_release(node, from);
}

/* Wait for the next message, or until the release is told. */
static int listen(struct node *node, int *which, MPI_Status *status, int *over) {
    for (int found = 0, tag; !found; sched_yield()) {
        if (coll_multicast_heard(node->multicast, &tag)) {
            *over = 1;
            return leave_early(node, tag);
        }
        COLL_TRY(PMPI_Testany(node->neighbours, node->receives, which, &found, status));
    }
    return MPI_SUCCESS;
}

/*
 * Wait for the next report. It is received once it is there: MPICH 4.3 may lose a receive from any
 * source if it treats ranks of one host as if they were on several (MPIR_CVAR_NOLOCAL).
 */
static int take_report(struct node *node, int *which, MPI_Status *status) {
    for (;; sched_yield()) {
        int found = 0;
        if (node->reports < node->children)
            COLL_TRY(PMPI_Iprobe(MPI_ANY_SOURCE, REPORT, node->comm, &found, status));
        if (found) {
            const int number = node->reports++;
            COLL_TRY(PMPI_Irecv(room_for(node, number), count_of(node), type_of(node),
                                status->MPI_SOURCE, REPORT, node->comm, &node->receives[number]));
        }
        COLL_TRY(PMPI_Testany(node->reports, node->receives, which, &found, status));
        if (found && *which != MPI_UNDEFINED)
            return MPI_SUCCESS;
    }
}

static int may_pass(const struct node *node) {
    return (node->moves & TOKEN_GOES) && node->token && node->heir < 0 && node->missing == 1;
}

/* Wait for the next message, or until the token may go, or until it is over. */
static int wait(struct node *node, int *which, MPI_Status *status, int *over) {
    int found = 0;
    *which = MPI_UNDEFINED;
    if (takes_reports(node))
        return take_report(node, which, status);
    if (listens(node))
        return listen(node, which, status, over);
    if (!may_pass(node))
        return PMPI_Waitany(node->neighbours, node->receives, which, status);
    for (const double end = PMPI_Wtime() + patience_of(node); !found;) {
        COLL_TRY(PMPI_Testany(node->neighbours, node->receives, which, &found, status));
        if (!found && PMPI_Wtime() >= end)
            return pass_token(node);
        if (!found)
            sched_yield();
    }
    return MPI_SUCCESS;
}

static int run_node(struct node *node) {
    int over = 0;
    COLL_TRY(see_who_waits(node));
    for (int i = 0; i < node->neighbours; ++i)
        COLL_TRY(expect(node, i));
    COLL_TRY(act(node, &over));
    while (!over) {
        MPI_Status status;
        int which;
        COLL_TRY(wait(node, &which, &status, &over));
        if (over || which == MPI_UNDEFINED)
            continue;
        COLL_TRY(handle(node, which, status.MPI_TAG, &over));
        if (!over)
            COLL_TRY(act(node, &over));
    }
    return MPI_SUCCESS;
}

/* Whether a place is below another one, or is it, in the tree of the places from 0 on. */
static int is_below(int arity, int place, int top) {
    while (place > top)
        place = (place - 1) / arity;
    return place == top;
}

/* The neighbours in the tree that begins at place 0; the one towards the root comes last. */
static void find_neighbours(struct node *node, int arity) {
    const int place = node->place, root = node->memory->root, p = node->cc->size;
    int parent = place == 0 ? -1 : (place - 1) / arity;
    if (place == root)
        parent = -1;
    for (int i = 1; i <= arity && (MPI_Aint)arity * place + i < p; ++i) {
        const int child = arity * place + i;
        if (place != root && is_below(arity, root, child))
            parent = child;
        else
            node->rank[node->neighbours++] = coll_rank_at(node->cc, child);
    }
    if (place > 0 && parent != (place - 1) / arity)
        node->rank[node->neighbours++] = coll_rank_at(node->cc, (place - 1) / arity);
    node->missing = node->children = node->neighbours;
    if (parent >= 0)
        node->rank[node->neighbours++] = coll_rank_at(node->cc, parent);
    node->token = parent < 0 || (parent == 0 && (node->moves & TOKEN_PER_BRANCH));
    node->heir = -1;
    node->last = place;
    node->changed = PMPI_Wtime();
    node->began = -1;
}

static int with_room(struct node *node) {
    const int n = node->neighbours;
    node->receives = malloc(2 * ((size_t)n + 1) * sizeof *node->receives);
    node->here = calloc((size_t)n + 1, sizeof *node->here);
    if (node->receives == NULL || node->here == NULL)
        return MPI_ERR_NO_MEM;
    node->sends = node->receives + n;
    for (int i = 0; i < 2 * n; ++i)
        node->receives[i] = MPI_REQUEST_NULL;
    if (count_of(node) > 0)
        COLL_TRY(coll_elements_for(node->call, (MPI_Count)n * count_of(node), &node->room));
    return coll_complete(node->receives, n, n, run_node(node));
}

/* Releases that fit into a datagram go by multicast, too, where there is any. */
static int find_multicast(struct node *node) {
    node->comm = node->cc->comm;
    if (count_of(node) > 0 && node->call->bytes > MULTICAST_MOST)
        return MPI_SUCCESS;
    COLL_TRY(coll_multicast_of(node->cc, &node->multicast));
    return node->multicast == NULL ? MPI_SUCCESS
                                   : coll_multicast_begin(node->multicast, &node->comm);
}

int coll_token_tree(const struct coll_call *call, const struct coll_comm *cc, int arity, int moves,
                    int patience) {
    static const char owners[TOKEN_REMEMBERS + 2]; /* the memory of each kind */
    if (cc->size > REMEMBERED_MOST)
        moves &= ~TOKEN_REMEMBERS;
    struct node node = {.call = call, .cc = cc, .moves = moves, .patience = patience * 1e-6};
    struct memory none = {0};
    void *kept = NULL;
    if (moves & TOKEN_REMEMBERS)
        COLL_TRY(coll_comm_agreed_state(cc, &owners[moves], sizeof none, &kept));
    if (kept == NULL)
        node.moves &= ~TOKEN_REMEMBERS; /* on all ranks, if one has no memory */
    node.memory = kept != NULL ? kept : &none;
    COLL_TRY(find_multicast(&node));
    node.rank = malloc(((size_t)arity + 1) * sizeof *node.rank);
    if (node.rank == NULL)
        return MPI_ERR_NO_MEM;
    node.place = cc->order != NULL ? cc->place_of[cc->rank] : cc->rank;
    find_neighbours(&node, arity);
    const int error = with_room(&node);
    free(node.rank);
    free(node.receives);
    free(node.here);
    free(node.room.memory);
    return error;
}
