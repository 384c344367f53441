/*
 * The schedule of a pattern at run time: the fast form of stagegen/schedule/patterns/segments.py
 * and tokens.py.
 *
 * Messages are cut into pieces of about one length. Whenever a piece has arrived, the paths that
 * are free again take the next ones: first those that use the link with the most work left over its
 * capacity. On a link of capacity c, the k-th piece then follows the (k - c)-th. What follows from
 * other waits is left out: the waits are the transitive reduction.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

/* A second criterion among messages whose critical links have as much work left. */
static const double OTHERS = 1e-3;
/* Pieces end together if their ends differ by less than this, in seconds. */
static const double ALIKE = 1e-12;

/* A directed edge of the tree whose leaves are the ranks. */
struct edge {
    double rate; /* bit/s of each piece on it */
    int capacity, free;
    double work;   /* seconds that are left over its capacity */
    int used;      /* how many pieces have been put on it */
    int *users;    /* these, in their order */
    int64_t room;  /* for so many */
    int at_a_time; /* of them: its capacity, or all that it has if that is less */
    double *ends;  /* when the latest `at_a_time` of them end */
};

struct message {
    int from, to, parts, left, length; /* pieces; those to start; edges of its path */
    int64_t bytes;
    double seconds; /* of a piece */
    const int *path;
};

struct running {
    double end;
    int message;
};

struct work {
    const struct pattern *pattern;
    int edges, messages, pieces;
    struct edge *edge;
    struct message *message;
    int *paths;
    int *order; /* [piece] -> message, as they start */
    int *remaining, *able;
    struct running *heap;
    int running;
    int64_t operations;
};

static int up_of_rank(int rank) {
    return 2 * rank;
}

static int up_of_node(const struct pattern *pattern, int node) {
    return 2 * (pattern->ranks + node);
}

/* Ways down have the number after that of the way up. */
enum { DOWN = 1 };

/* How many ranks are on each node; the rate of the slowest host in use, and of the fastest link. */
static void look_at(const struct pattern *pattern, int *on, long long *slowest,
                    long long *fastest) {
    *slowest = *fastest = 0;
    for (int rank = 0; rank < pattern->ranks; ++rank) {
        const long long rate = pattern->tree.rates[pattern->host[rank]];
        ++on[pattern->host[rank]];
        *slowest = *slowest == 0 || rate < *slowest ? rate : *slowest;
    }
    for (int node = 0; node < pattern->tree.nodes; ++node)
        if (pattern->tree.rates[node] > *fastest)
            *fastest = pattern->tree.rates[node];
}

static void set(struct edge *edge, long long rate, int capacity) {
    edge[0].capacity = edge[DOWN].capacity = capacity;
    edge[0].rate = edge[DOWN].rate = (double)rate / capacity;
}

/*
 * The link of a rank carries one piece: that of its host if the rank is alone there, else one of
 * its own to the host, as fast as any link. Other links carry as many as they are times as fast as
 * the slowest host's.
 */
static void set_edges(struct work *work, const int *on, long long slowest, long long fastest) {
    const struct pattern *pattern = work->pattern;
    for (int rank = 0; rank < pattern->ranks; ++rank) {
        const int host = pattern->host[rank];
        set(&work->edge[up_of_rank(rank)], on[host] > 1 ? fastest : pattern->tree.rates[host], 1);
    }
    for (int node = 0; node < pattern->tree.nodes; ++node) {
        const long long rate = pattern->tree.rates[node], times = rate / slowest;
        const int whole = times < 1 ? 1 : times < INT_MAX ? (int)times : INT_MAX;
        set(&work->edge[up_of_node(pattern, node)], rate, whole);
    }
}

static int depth_of(const struct pattern_tree *tree, int node) {
    int depth = 0;
    while (tree->parent[node] >= 0) {
        node = tree->parent[node];
        ++depth;
    }
    return depth;
}

/* The edges from one rank to another; returns how many. */
static int find_path(const struct pattern *pattern, const int *on, const int *depth, int from,
                     int to, int *path) {
    const struct pattern_tree *tree = &pattern->tree;
    int length = 0, a = pattern->host[from], b = pattern->host[to];
    path[length++] = up_of_rank(from);
    path[length++] = up_of_rank(to) + DOWN;
    if (a == b)
        return length;
    if (on[a] == 1) /* the link of the rank is that of the host */
        a = tree->parent[a];
    if (on[b] == 1)
        b = tree->parent[b];
    while (a != b) {
        if (depth[a] >= depth[b]) {
            path[length++] = up_of_node(pattern, a);
            a = tree->parent[a];
        } else {
            path[length++] = up_of_node(pattern, b) + DOWN;
            b = tree->parent[b];
        }
    }
    return length;
}

/* The edges that are likely to be taken come first, so that one look is mostly enough. */
static void sort_path(const struct work *work, int *path, int length) {
    for (int i = 1; i < length; ++i) {
        const int edge = path[i];
        int place = i;
        for (; place > 0 && work->edge[path[place - 1]].work < work->edge[edge].work; --place)
            path[place] = path[place - 1];
        path[place] = edge;
    }
}

static int64_t bytes_of(const struct pattern *pattern, int from, int to) {
    return from == to ? 0 : pattern->bytes[(int64_t)from * pattern->ranks + to];
}

/* Into how many parts messages are cut: of about `segment` bytes, but not into too many together.
 */
static void cut(struct work *work, int64_t segment) {
    const int64_t most = work->messages > PATTERN_PIECES ? work->messages : PATTERN_PIECES;
    int64_t total = 0;
    for (;;) {
        total = 0;
        for (int m = 0; m < work->messages; ++m) {
            struct message *message = &work->message[m];
            const int64_t parts = (message->bytes + segment / 2) / segment;
            total += parts < 1 ? 1 : parts;
            message->parts = parts < 1 ? 1 : parts > most ? (int)most : (int)parts;
        }
        if (total <= most)
            break;
        segment *= 2;
    }
    work->pieces = (int)total;
}

static void find_messages(struct work *work, const int *on, const int *depth, int longest) {
    const struct pattern *pattern = work->pattern;
    for (int from = 0; from < pattern->ranks; ++from)
        for (int to = 0; to < pattern->ranks; ++to) {
            if (bytes_of(pattern, from, to) <= 0)
                continue;
            int *path = work->paths + (int64_t)work->messages * longest;
            struct message *message = &work->message[work->messages++];
            double rate = 0;
            *message = (struct message){
                .from = from, .to = to, .bytes = bytes_of(pattern, from, to), .path = path};
            message->length = find_path(pattern, on, depth, from, to, path);
            for (int i = 0; i < message->length; ++i)
                if (i == 0 || work->edge[path[i]].rate < rate)
                    rate = work->edge[path[i]].rate;
            message->seconds = 8.0 * (double)message->bytes / rate;
            for (int i = 0; i < message->length; ++i)
                work->edge[path[i]].work += message->seconds / work->edge[path[i]].capacity;
        }
}

/* Messages with their paths and the edges with their loads; what a link may have of users. */
static int read_pattern(struct work *work, int64_t segment) {
    const struct pattern *pattern = work->pattern;
    const int nodes = pattern->tree.nodes;
    int *on = calloc((size_t)nodes, 2 * sizeof *on), *depth = on == NULL ? NULL : on + nodes;
    int64_t count = 0;
    int longest = 0;
    long long slowest, fastest;
    if (on == NULL)
        return 0;
    for (int node = 0; node < nodes; ++node) {
        depth[node] = depth_of(&pattern->tree, node);
        longest = depth[node] > longest ? depth[node] : longest;
    }
    longest = 2 * longest + 2;
    for (int from = 0; from < pattern->ranks; ++from)
        for (int to = 0; to < pattern->ranks; ++to)
            count += bytes_of(pattern, from, to) > 0;
    work->edges = 2 * (pattern->ranks + nodes);
    work->edge = calloc((size_t)work->edges, sizeof *work->edge);
    work->message = calloc((size_t)count + 1, sizeof *work->message);
    work->paths = malloc(((size_t)count * (size_t)longest + 1) * sizeof *work->paths);
    const int ok = work->edge != NULL && work->message != NULL && work->paths != NULL;
    if (ok) {
        look_at(pattern, on, &slowest, &fastest);
        set_edges(work, on, slowest, fastest);
        find_messages(work, on, depth, longest);
        cut(work, segment);
        for (int m = 0; m < work->messages; ++m) {
            struct message *message = &work->message[m];
            sort_path(work, work->paths + (int64_t)m * longest, message->length);
            message->left = message->parts;
            message->seconds /= message->parts;
        }
    }
    free(on);
    return ok;
}

static int is_free(struct work *work, const struct message *message) {
    for (int i = 0; i < message->length; ++i) {
        ++work->operations;
        if (work->edge[message->path[i]].free <= 0)
            return 0;
    }
    return 1;
}

/* How much is left to do on the links of a message: the most of one, and a little of the others. */
static double urgency(struct work *work, const struct message *message) {
    double most = 0, sum = 0;
    for (int i = 0; i < message->length; ++i) {
        const double left = work->edge[message->path[i]].work;
        most = left > most ? left : most;
        sum += left;
    }
    work->operations += message->length;
    return most + OTHERS * sum;
}

static void push(struct work *work, double end, int message) {
    int place = work->running++;
    for (; place > 0 && work->heap[(place - 1) / 2].end > end; place = (place - 1) / 2)
        work->heap[place] = work->heap[(place - 1) / 2];
    work->heap[place] = (struct running){end, message};
}

static int pop(struct work *work) {
    const int first = work->heap[0].message;
    const struct running last = work->heap[--work->running];
    int place = 0;
    for (int child = 1; child < work->running; child = 2 * place + 1) {
        child += child + 1 < work->running && work->heap[child + 1].end < work->heap[child].end;
        if (last.end <= work->heap[child].end)
            break;
        work->heap[place] = work->heap[child];
        place = child;
    }
    work->heap[place] = last;
    return first;
}

static void start(struct work *work, int number, double now, int started) {
    struct message *message = &work->message[number];
    work->order[started] = number;
    --message->left;
    for (int i = 0; i < message->length; ++i) {
        struct edge *edge = &work->edge[message->path[i]];
        --edge->free;
        edge->work -= message->seconds / edge->capacity;
    }
    push(work, now + message->seconds, number);
}

/* Keep of `count` messages those that can start now. */
static int keep_able(struct work *work, const int *messages, int count) {
    int kept = 0;
    for (int i = 0; i < count; ++i)
        if (work->message[messages[i]].left > 0 && is_free(work, &work->message[messages[i]]))
            work->able[kept++] = messages[i];
    return kept;
}

/* First fit: the pieces in the order of their starts. */
static void put_in_order(struct work *work) {
    int started = 0, remaining = work->messages;
    double now = 0;
    for (int m = 0; m < work->messages; ++m)
        work->remaining[m] = m;
    for (int e = 0; e < work->edges; ++e)
        work->edge[e].free = work->edge[e].capacity;
    while (started < work->pieces) {
        int kept = 0;
        for (int i = 0; i < remaining; ++i)
            if (work->message[work->remaining[i]].left > 0)
                work->remaining[kept++] = work->remaining[i];
        remaining = kept;
        int able = keep_able(work, work->remaining, remaining);
        while (able > 0) {
            int best = 0;
            double most = -1;
            for (int i = 0; i < able; ++i) {
                const double own = urgency(work, &work->message[work->able[i]]);
                if (own > most) {
                    most = own;
                    best = i;
                }
            }
            start(work, work->able[best], now, started++);
            able = keep_able(work, work->able, able);
        }
        now = work->heap[0].end;
        while (work->running > 0 && work->heap[0].end <= now + ALIKE) {
            const struct message *ended = &work->message[pop(work)];
            for (int i = 0; i < ended->length; ++i)
                ++work->edge[ended->path[i]].free;
        }
    }
}

/* Room for the users of each edge, and for the ends of as many as it carries at a time. */
static int make_room(struct work *work, int **users, double **ends) {
    int64_t all = 0, at_a_time = 0;
    for (int m = 0; m < work->messages; ++m)
        for (int i = 0; i < work->message[m].length; ++i)
            work->edge[work->message[m].path[i]].room += work->message[m].parts;
    for (int e = 0; e < work->edges; ++e) {
        struct edge *edge = &work->edge[e];
        edge->at_a_time = edge->capacity < edge->room ? edge->capacity : (int)edge->room;
        all += edge->room;
        at_a_time += edge->at_a_time;
    }
    *users = malloc(((size_t)all + 1) * sizeof **users);
    *ends = malloc(((size_t)at_a_time + 1) * sizeof **ends);
    if (*users == NULL || *ends == NULL)
        return 0;
    all = at_a_time = 0;
    for (int e = 0; e < work->edges; ++e) {
        work->edge[e].users = *users + all;
        work->edge[e].ends = *ends + at_a_time;
        all += work->edge[e].room;
        at_a_time += work->edge[e].at_a_time;
    }
    return 1;
}

/*
 * The phase of each piece: on every link, the k-th piece is in a later phase than the (k - c)-th
 * and in none before that of the (k - 1)-th. Each starts when these (k - c)-th ones have ended.
 */
static void find_phases(struct work *work, struct pattern_plan *plan) {
    for (int m = 0; m < work->messages; ++m)
        work->message[m].left = 0; /* parts so far */
    for (int number = 0; number < work->pieces; ++number) {
        struct message *message = &work->message[work->order[number]];
        struct pattern_piece *piece = &plan->piece[number];
        double begin = 0;
        *piece =
            (struct pattern_piece){message->from, message->to, message->left++, message->parts, 0};
        for (int i = 0; i < message->length; ++i) {
            const struct edge *edge = &work->edge[message->path[i]];
            const int last = edge->used == 0 ? 0 : plan->piece[edge->users[edge->used - 1]].phase;
            piece->phase = last > piece->phase ? last : piece->phase;
            if (edge->used < edge->capacity)
                continue;
            const int before = plan->piece[edge->users[edge->used - edge->capacity]].phase + 1;
            const double ended = edge->ends[edge->used % edge->at_a_time];
            piece->phase = before > piece->phase ? before : piece->phase;
            begin = ended > begin ? ended : begin;
        }
        const int64_t bytes = coll_pattern_start(message->bytes, piece->part + 1, piece->parts) -
                              coll_pattern_start(message->bytes, piece->part, piece->parts);
        const double end =
            begin + message->seconds * message->parts * (double)bytes / (double)message->bytes;
        for (int i = 0; i < message->length; ++i) {
            struct edge *edge = &work->edge[message->path[i]];
            edge->ends[edge->used % edge->at_a_time] = end;
            edge->users[edge->used++] = number;
        }
        plan->seconds = end > plan->seconds ? end : plan->seconds;
    }
}

/* Put the pieces in the order of their phases; `work->order` goes with them. */
static int sort_by_phase(struct work *work, struct pattern_plan *plan) {
    int phases = 0;
    for (int i = 0; i < plan->pieces; ++i)
        phases = plan->piece[i].phase + 1 > phases ? plan->piece[i].phase + 1 : phases;
    int *next = calloc((size_t)phases + 1, sizeof *next);
    int *order = malloc((size_t)plan->pieces * sizeof *order);
    struct pattern_piece *sorted = malloc((size_t)plan->pieces * sizeof *sorted);
    const int ok = next != NULL && order != NULL && sorted != NULL;
    if (ok) {
        for (int i = 0; i < plan->pieces; ++i)
            ++next[plan->piece[i].phase + 1];
        for (int phase = 0; phase < phases; ++phase)
            next[phase + 1] += next[phase];
        for (int i = 0; i < plan->pieces; ++i) {
            const int place = next[plan->piece[i].phase]++;
            sorted[place] = plan->piece[i];
            order[place] = work->order[i];
        }
        memcpy(plan->piece, sorted, (size_t)plan->pieces * sizeof *sorted);
        memcpy(work->order, order, (size_t)plan->pieces * sizeof *order);
    }
    free(next);
    free(order);
    free(sorted);
    return ok;
}

typedef uint64_t word;
enum { BITS = 64 };

/* All that has arrived when a piece starts, as bits; and what it would wait for directly. */
struct waiting {
    word *arrived; /* [piece * words] */
    int64_t words;
    int *last; /* [rank]: the latest piece that it sent, or -1 */
};

static int has(const word *bits, int piece) {
    return (int)(bits[piece / BITS] >> (piece % BITS) & 1);
}

/*
 * The waits of one piece: those that no other wait and no earlier send of its sender implies. What
 * is before it in the order has its set of arrivals already.
 */
static void find_waits(struct work *work, struct pattern_plan *plan, struct waiting *waiting,
                       int number, int *before) {
    const struct message *message = &work->message[work->order[number]];
    word *own = waiting->arrived + number * waiting->words;
    const int words = number / BITS + 1, sent = waiting->last[message->from];
    int count = 0;
    if (sent >= 0)
        memcpy(own, waiting->arrived + sent * waiting->words, (size_t)words * sizeof *own);
    for (int i = 0; i < message->length; ++i) {
        struct edge *edge = &work->edge[message->path[i]];
        if (edge->used >= edge->capacity)
            before[count++] = edge->users[edge->used - edge->capacity];
        edge->users[edge->used++] = number;
    }
    for (int i = 1; i < count; ++i) { /* the latest first: it implies others, never they it */
        const int one = before[i];
        int place = i;
        for (; place > 0 && before[place - 1] < one; --place)
            before[place] = before[place - 1];
        before[place] = one;
    }
    for (int i = 0; i < count; ++i) {
        const int first = before[i];
        if (has(own, first))
            continue;
        const word *theirs = waiting->arrived + first * waiting->words;
        for (int w = 0; w <= first / BITS; ++w)
            own[w] |= theirs[w];
        own[first / BITS] |= (word)1 << (first % BITS);
        work->operations += first / BITS + 1;
        plan->wait[plan->waits++] = (struct pattern_wait){first, number};
    }
    waiting->last[message->from] = number;
}

static int find_all_waits(struct work *work, struct pattern_plan *plan) {
    struct waiting waiting = {.words = plan->pieces / BITS + 1};
    int longest = 1;
    int64_t most = 0;
    for (int m = 0; m < work->messages; ++m) {
        longest = work->message[m].length > longest ? work->message[m].length : longest;
        most += (int64_t)work->message[m].length * work->message[m].parts;
    }
    for (int e = 0; e < work->edges; ++e)
        work->edge[e].used = 0;
    int *before = malloc((size_t)longest * sizeof *before);
    waiting.arrived = calloc((size_t)plan->pieces * (size_t)waiting.words, sizeof(word));
    waiting.last = malloc((size_t)work->pattern->ranks * sizeof *waiting.last);
    plan->wait = malloc(((size_t)most + 1) * sizeof *plan->wait);
    const int ok =
        before != NULL && waiting.arrived != NULL && waiting.last != NULL && plan->wait != NULL;
    for (int rank = 0; ok && rank < work->pattern->ranks; ++rank)
        waiting.last[rank] = -1;
    for (int number = 0; ok && number < plan->pieces; ++number)
        find_waits(work, plan, &waiting, number, before);
    free(before);
    free(waiting.arrived);
    free(waiting.last);
    return ok;
}

int coll_pattern_schedule(const struct pattern *pattern, int64_t segment, int with_waits,
                          struct pattern_plan *plan) {
    struct work work = {.pattern = pattern};
    int *users = NULL;
    double *ends = NULL;
    *plan = (struct pattern_plan){0};
    int ok = read_pattern(&work, segment);
    const size_t pieces = (size_t)work.pieces + 1, messages = (size_t)work.messages + 1;
    if (ok) {
        work.order = malloc(pieces * sizeof *work.order);
        work.remaining = malloc(messages * sizeof *work.remaining);
        work.able = malloc(messages * sizeof *work.able);
        work.heap = malloc(pieces * sizeof *work.heap);
        plan->piece = malloc(pieces * sizeof *plan->piece);
        ok = work.order != NULL && work.remaining != NULL && work.able != NULL &&
             work.heap != NULL && plan->piece != NULL && make_room(&work, &users, &ends);
    }
    if (ok) {
        put_in_order(&work);
        plan->pieces = work.pieces;
        find_phases(&work, plan);
        ok = sort_by_phase(&work, plan) && (!with_waits || find_all_waits(&work, plan));
    }
    plan->operations = work.operations;
    free(users);
    free(ends);
    free(work.heap);
    free(work.able);
    free(work.remaining);
    free(work.order);
    free(work.paths);
    free(work.message);
    free(work.edge);
    if (!ok)
        coll_pattern_free(plan);
    return ok;
}

void coll_pattern_free(struct pattern_plan *plan) {
    free(plan->piece);
    free(plan->wait);
    *plan = (struct pattern_plan){0};
}
