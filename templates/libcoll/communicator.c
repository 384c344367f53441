/* What a communicator is: which of its ranks are next to each other in the network. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "persistent.h"

/*
 * MPI libraries can have only so many communicators at a time (MPICH 2,048). This library takes at
 * most this many for private duplicates, so that the application hardly misses them.
 */
enum { LIVE_MOST = 128 };

static atomic_int live;

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t keyval_lock = PTHREAD_MUTEX_INITIALIZER;

static void free_data(struct coll_comm *cc) {
    while (cc->combining != NULL && *cc->combining != NULL) {
        struct coll_combining *first = *cc->combining;
        *cc->combining = first->next;
        free(first);
    }
    free(cc->combining);
    while (cc->states != NULL && cc->states->first != NULL) {
        struct coll_state *first = cc->states->first;
        cc->states->first = first->next;
        free(first);
    }
    free(cc->states);
#ifdef COLL_ADAPTIVE
    coll_free_adaptive(cc->adaptive);
#endif
    free(cc->memory);
    free(cc);
}

/* What all ranks have to do together: once, and in the same order on all of them. */
static int end_states(const struct coll_comm *cc) {
    int error = MPI_SUCCESS;
    for (struct coll_state *state = cc->states == NULL ? NULL : cc->states->first; state != NULL;
         state = state->next) {
        int (*end)(void *data) = state->end;
        state->end = NULL;
        const int now = end == NULL ? MPI_SUCCESS : end(state + 1);
        error = error == MPI_SUCCESS ? now : error;
    }
    return error;
}

/* One user less; the communicator of plans goes with the last one. */
void coll_plans_release(struct coll_plans *plans) {
    if (atomic_fetch_sub(&plans->users, 1) > 1)
        return;
    if (plans->handler != MPI_ERRHANDLER_NULL)
        PMPI_Errhandler_free(&plans->handler);
    if (plans->comm != MPI_COMM_NULL) {
        atomic_fetch_sub(&live, 1);
        PMPI_Comm_free(&plans->comm);
    }
    free(plans);
}

/* The application's communicator ends. Requests that stay keep its error handler. */
static void leave_plans(MPI_Comm comm, struct coll_plans *plans) {
    if (atomic_load(&plans->users) > 1 &&
        PMPI_Comm_get_errhandler(comm, &plans->handler) != MPI_SUCCESS)
        plans->handler = MPI_ERRHANDLER_NULL;
    atomic_store(&plans->origin, MPI_COMM_NULL);
    coll_plans_release(plans);
}

static int delete_comm(MPI_Comm comm, int key, void *attribute, void *extra) {
    (void)key;
    (void)extra;
    struct coll_comm *cc = attribute;
    int error = MPI_SUCCESS;
    coll_forget(comm);
    if (cc->plans != NULL)
        leave_plans(comm, cc->plans);
    if (cc->comm != MPI_COMM_NULL) {
        atomic_fetch_sub(&live, 1);
        error = end_states(cc); /* none are left but where the communicator ends with MPI */
        const int freed = PMPI_Comm_free(&cc->comm);
        error = error == MPI_SUCCESS ? freed : error;
    }
    free_data(cc);
    return error;
}

/* Numbers that all tables of a communicator take. */
static size_t numbers_of(const struct coll_comm *cc) {
    return 7 * (size_t)cc->size + 1 + COLL_LEVELS * (2 * (size_t)cc->size + 1);
}

/* Where the tables are in cc->memory; those of a group only where there is one. */
static void lay_out(struct coll_comm *cc) {
    const size_t size = (size_t)cc->size;
    cc->order = cc->memory;
    cc->place_of = cc->order + size;
    cc->first_place = cc->place_of + size;
    cc->host_place = cc->first_place + size + 1;
    cc->depth_before = cc->host_place + size;
    cc->rank_of = cc->depth_before + size;
    cc->position_of = cc->rank_of + size;
    int *next = cc->position_of + size;
    for (int level = 0; level < COLL_LEVELS; ++level) {
        cc->levels[level].first = next;
        cc->levels[level].ranks = next + size + 1;
        next += 2 * size + 1;
    }
}

static void leave_out_group(struct coll_comm *cc) {
    cc->rank_of = cc->position_of = NULL;
}

static int copy_tables(struct coll_comm *copy, const struct coll_comm *cc) {
    copy->memory = malloc(numbers_of(cc) * sizeof *copy->memory);
    if (copy->memory == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(copy->memory, cc->memory, numbers_of(cc) * sizeof *copy->memory);
    lay_out(copy);
    if (cc->rank_of == NULL)
        leave_out_group(copy);
    return MPI_SUCCESS;
}

static struct coll_comm *copy_of(const struct coll_comm *cc) {
    struct coll_comm *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *cc;
    copy->comm = MPI_COMM_NULL;
    copy->plans = NULL;
    copy->no_plans = 0;
    copy->short_calls = 0;
    copy->told = 0;
#ifdef COLL_ADAPTIVE
    copy->adaptive = NULL;
    copy->no_adaptive = 0;
#endif
    copy->memory = NULL;
    copy->combining = calloc(1, sizeof *copy->combining);
    copy->states = calloc(1, sizeof *copy->states);
    if (copy->combining == NULL || copy->states == NULL ||
        (cc->memory != NULL && copy_tables(copy, cc) != MPI_SUCCESS)) {
        free_data(copy);
        return NULL;
    }
    return copy;
}

/* Nothing but coll_comm_end_together makes a communicator native without a reason. */
static int is_ending(const struct coll_comm *cc) {
    return cc->kind == COLL_KIND_NATIVE && cc->why == COLL_WHY_NOTHING;
}

/*
 * A duplicate inherits what is known of the ranks; a private one it has to get for itself. While
 * the communicator is freed, our attribute may be gone on some ranks: a duplicate inherits nothing
 * then.
 */
static int copy_comm(MPI_Comm comm, int key, void *extra, void *attribute, void *copy, int *flag) {
    (void)comm;
    (void)key;
    (void)extra;
    const struct coll_comm *cc = attribute;
    *flag = cc->why != COLL_WHY_LIMIT && cc->why != COLL_WHY_CONTEXTS && !is_ending(cc);
    if (!*flag)
        return MPI_SUCCESS;
    struct coll_comm *made = copy_of(cc);
    *(struct coll_comm **)copy = made;
    return made == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/* The key under which our data hangs on communicators. */
static int get_keyval(int *key) {
    int error = MPI_SUCCESS;
    pthread_mutex_lock(&keyval_lock);
    if (keyval == MPI_KEYVAL_INVALID)
        error = PMPI_Comm_create_keyval(copy_comm, delete_comm, &keyval, NULL);
    *key = keyval;
    pthread_mutex_unlock(&keyval_lock);
    return error;
}

/*
 * Put the ranks in depth-first order of their hosts: those of a host next to each other, in their
 * own order. `next` has a 0 for every host of the cluster and one more.
 */
static void put_in_order(struct coll_comm *cc, const int *hosts, int *next) {
    int hosts_before = 0;
    for (int rank = 0; rank < cc->size; ++rank)
        ++next[coll_cluster_place_of(hosts[rank]) + 1];
    for (int place = 0; place < coll_cluster_hosts; ++place) {
        if (place == coll_cluster_place_of(hosts[cc->rank]))
            cc->host = hosts_before;
        if (next[place + 1] > 0) {
            cc->host_place[hosts_before] = place;
            cc->first_place[hosts_before++] = next[place];
        }
        next[place + 1] += next[place];
    }
    cc->first_place[cc->hosts] = cc->size;
    for (int rank = 0; rank < cc->size; ++rank) {
        cc->place_of[rank] = next[coll_cluster_place_of(hosts[rank])]++;
        cc->order[cc->place_of[rank]] = rank;
    }
}

/*
 * How deep in the tree of switches each place meets the one before: of hosts that are next to each
 * other here, as near to the root as any two between them; INT_MAX for ranks of one host.
 */
static void find_depths(struct coll_comm *cc, const int *hosts) {
    for (int place = 1; place < cc->size; ++place) {
        int at = coll_cluster_place_of(hosts[cc->order[place - 1]]), depth = INT_MAX;
        while (at < coll_cluster_place_of(hosts[cc->order[place]]))
            if (coll_cluster_depth_before(++at) < depth)
                depth = coll_cluster_depth_before(at);
        cc->depth_before[place] = depth;
    }
}

static int number_at(enum coll_level level, int place) {
    return level == COLL_LEVEL_SITES ? coll_cluster_site_of(place) : coll_cluster_switch_of(place);
}

/*
 * Put the ranks in the parts of a level: a part has what the places of one switch, or of one site,
 * have, and comes where its first place is. Its other places need not follow. `part_of` is room for
 * a number for every host of the cluster.
 */
static void divide(struct coll_comm *cc, enum coll_level level, const int *hosts, int *part_of) {
    struct coll_parted *parted = &cc->levels[level];
    int *next = parted->first;
    for (int number = 0; number < coll_cluster_hosts; ++number)
        part_of[number] = -1;
    memset(next, 0, ((size_t)cc->size + 1) * sizeof *next);
    parted->parts = 0;
    for (int place = 0; place < cc->size; ++place) {
        int *part = &part_of[number_at(level, coll_cluster_place_of(hosts[cc->order[place]]))];
        if (*part < 0)
            *part = parted->parts++;
        ++next[*part];
    }
    for (int part = parted->parts, end = cc->size; part >= 0; --part) {
        end -= next[part];
        next[part] = end;
    }
    for (int place = 0; place < cc->size; ++place) {
        const int rank = cc->order[place];
        parted->ranks[next[part_of[number_at(level, coll_cluster_place_of(hosts[rank]))]]++] = rank;
    }
    memmove(next + 1, next, (size_t)parted->parts * sizeof *next);
    next[0] = 0;
    parted->part = part_of[number_at(level, coll_cluster_place_of(hosts[cc->rank]))];
}

/*
 * If every position of a group can be given its own rank, fill rank_of and position_of and return
 * 1. The k-th rank on a host takes the k-th position of that host, so any order of the ranks gets
 * the schedule of the machines that they really run on.
 */
static int is_group(struct coll_comm *cc, const int *hosts, int group) {
    if (cc->size != coll_cluster_group_size(group))
        return 0;
    for (int rank = 0; rank < cc->size; ++rank)
        cc->position_of[rank] = -1;
    for (int position = 0; position < cc->size; ++position) {
        int rank = 0;
        const int host = coll_cluster_host_of(group, position);
        while (rank < cc->size && (hosts[rank] != host || cc->position_of[rank] != -1))
            ++rank;
        if (rank == cc->size)
            return 0;
        cc->position_of[rank] = position;
        cc->rank_of[position] = rank;
    }
    return 1;
}

static int find_group(struct coll_comm *cc, const int *hosts) {
    for (int group = 0; group < coll_cluster_groups; ++group)
        if (is_group(cc, hosts, group))
            return group;
    return -1;
}

/* The kind that follows from the hosts of all ranks, and from nothing else. */
static enum coll_kind kind_of(const struct coll_comm *cc, const int *hosts) {
    for (int rank = 0; rank < cc->size; ++rank)
        if (hosts[rank] < 0)
            return COLL_KIND_OTHER;
    return COLL_KIND_HOSTS;
}

static int compare_hosts(const void *left, const void *right) {
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* On how many hosts the ranks are, known or not, and how many are on each in the mean. */
static int find_shape(struct coll_comm *cc, const int *hosts) {
    int *sorted = malloc((size_t)cc->size * sizeof *sorted);
    if (sorted == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(sorted, hosts, (size_t)cc->size * sizeof *sorted);
    qsort(sorted, (size_t)cc->size, sizeof *sorted, compare_hosts);
    cc->hosts = 1;
    for (int rank = 1; rank < cc->size; ++rank)
        cc->hosts += sorted[rank] != sorted[rank - 1];
    free(sorted);
    cc->ranks_per_host = (cc->size + cc->hosts - 1) / cc->hosts;
    return MPI_SUCCESS;
}

/* Find what is known of the ranks, whose hosts are hosts[rank], equal on all of them. */
static int locate(struct coll_comm *cc, const int *hosts) {
    cc->kind = kind_of(cc, hosts);
    COLL_TRY(find_shape(cc, hosts));
    if (cc->kind < COLL_KIND_HOSTS)
        return MPI_SUCCESS;
    cc->memory = malloc(numbers_of(cc) * sizeof *cc->memory);
    int *next = calloc((size_t)coll_cluster_hosts + 1, sizeof *next);
    if (cc->memory == NULL || next == NULL) {
        free(next);
        return MPI_ERR_NO_MEM;
    }
    lay_out(cc);
    put_in_order(cc, hosts, next);
    find_depths(cc, hosts);
    for (int level = 0; level < COLL_LEVELS; ++level)
        divide(cc, (enum coll_level)level, hosts, next);
    free(next);
    cc->group = find_group(cc, hosts);
    if (cc->group >= 0)
        cc->kind = COLL_KIND_CLUSTER;
    else
        leave_out_group(cc);
    return MPI_SUCCESS;
}

static int locate_peers(struct coll_comm *cc, const struct coll_peers *peers) {
    if (peers->unlike >= 0) {
        cc->why = COLL_WHY_UNLIKE;
        cc->odd_rank = peers->unlike;
        return MPI_SUCCESS;
    }
    if (peers->stranger >= 0) {
        cc->why = COLL_WHY_STRANGER;
        cc->odd_rank = peers->stranger;
        memcpy(cc->odd_name, peers->name, sizeof cc->odd_name);
    }
    return locate(cc, peers->hosts);
}

/* Find the communicator's kind from what is known of all its ranks: alike on all of them. */
static int identify(MPI_Comm comm, struct coll_comm *cc) {
    struct coll_peers peers = {.hosts = malloc((size_t)cc->size * sizeof *peers.hosts)};
    int error = peers.hosts == NULL ? MPI_ERR_NO_MEM : coll_peers_of(comm, cc->size, &peers);
    if (error == MPI_SUCCESS)
        error = locate_peers(cc, &peers);
    free(peers.hosts);
    return error;
}

/*
 * Whether the ranks of a communicator are threads, as MPICH's may be: it has no duplicates, and its
 * group is of processes.
 */
extern int PMPIX_Comm_test_threadcomm(MPI_Comm comm, int *flag) __attribute__((weak));

static int has_threads(MPI_Comm comm, int *flag) {
    *flag = 0;
    return PMPIX_Comm_test_threadcomm == NULL ? MPI_SUCCESS
                                              : PMPIX_Comm_test_threadcomm(comm, flag);
}

static int create(MPI_Comm comm, struct coll_comm *cc) {
    int inter, threads;
    cc->comm = MPI_COMM_NULL;
    cc->kind = COLL_KIND_NATIVE;
    cc->group = -1;
    cc->combining = calloc(1, sizeof *cc->combining);
    cc->states = calloc(1, sizeof *cc->states);
    if (cc->combining == NULL || cc->states == NULL)
        return MPI_ERR_NO_MEM;
    COLL_TRY(PMPI_Comm_test_inter(comm, &inter));
    COLL_TRY(PMPI_Comm_rank(comm, &cc->rank));
    COLL_TRY(PMPI_Comm_size(comm, &cc->size));
    COLL_TRY(has_threads(comm, &threads));
    if (!inter && !threads && cc->size > 1)
        return identify(comm, cc);
    cc->why = inter ? COLL_WHY_INTER : threads ? COLL_WHY_THREADS : COLL_WHY_SINGLE;
    return MPI_SUCCESS;
}

static struct coll_comm self = {
    .comm = MPI_COMM_NULL, .size = 1, .group = -1, .why = COLL_WHY_SINGLE};

/* The data that hangs on a communicator; made, and hung there, by its first call. */
static int find(MPI_Comm comm, struct coll_comm **cc) {
    int key, found;
    if (comm == MPI_COMM_SELF) { /* whose attributes end with MPI itself: it has none of ours */
        *cc = &self;
        return MPI_SUCCESS;
    }
    COLL_TRY(get_keyval(&key));
    COLL_TRY(PMPI_Comm_get_attr(comm, key, cc, &found));
    if (found)
        return MPI_SUCCESS;
    *cc = calloc(1, sizeof **cc);
    if (*cc == NULL)
        return MPI_ERR_NO_MEM;
    int error = create(comm, *cc);
    if (error == MPI_SUCCESS)
        error = PMPI_Comm_set_attr(comm, key, *cc);
    if (error != MPI_SUCCESS)
        delete_comm(comm, key, *cc, NULL);
    return error;
}

/*
 * The data of a communicator. Its first call is collective over the communicator where its ranks
 * have not met before: see peers.c.
 */
int coll_comm_get(MPI_Comm comm, struct coll_comm **cc) {
    *cc = coll_cached(comm);
    if (*cc != NULL)
        return MPI_SUCCESS;
    COLL_TRY(find(comm, cc));
    if ((*cc)->kind != COLL_KIND_NATIVE) /* which an intercommunicator is: see coll_member */
        coll_cache(comm, *cc);
    return MPI_SUCCESS;
}

/* Made from the group: MPI_Comm_dup would call the copy functions of the application. */
static int duplicate(MPI_Comm comm, MPI_Comm *twin) {
    MPI_Group group;
    COLL_TRY(PMPI_Comm_group(comm, &group));
    const int error = PMPI_Comm_create(comm, group, twin);
    COLL_TRY(PMPI_Group_free(&group));
    COLL_TRY(error);
    return PMPI_Comm_set_errhandler(*twin, MPI_ERRORS_RETURN);
}

/* Leave the communicator to the MPI library for good. All ranks do, or none. */
static void retire(struct coll_comm *cc, enum coll_why why) {
    cc->kind = COLL_KIND_NATIVE;
    cc->why = why;
    cc->comm = MPI_COMM_NULL; /* a rank that has it cannot free it without the others */
}

static int all_say(MPI_Comm comm, int yes, int *all) {
    return PMPI_Allreduce(&yes, all, 1, MPI_INT, MPI_MIN, comm);
}

static int make_private(MPI_Comm comm, struct coll_comm *cc) {
    int all = 0;
    COLL_TRY(all_say(comm, atomic_load(&live) < LIVE_MOST, &all));
    if (!all) {
        retire(cc, COLL_WHY_LIMIT);
        return MPI_SUCCESS;
    }
    const int made = duplicate(comm, &cc->comm) == MPI_SUCCESS;
    const int error = all_say(comm, made, &all);
    if (error == MPI_SUCCESS && all)
        atomic_fetch_add(&live, 1);
    else if (error == MPI_SUCCESS)
        retire(cc, COLL_WHY_CONTEXTS);
    else
        cc->comm = MPI_COMM_NULL;
    return error;
}

/*
 * Make the private duplicate when the first routine of ours needs it; collective. Where a rank
 * has too many, or cannot have it (MPI libraries run out of contexts), the kind becomes
 * COLL_KIND_NATIVE on all.
 */
int coll_comm_private(MPI_Comm comm, struct coll_comm *cc) {
    MPI_Errhandler handler;
    if (cc->comm != MPI_COMM_NULL || cc->kind == COLL_KIND_NATIVE)
        return MPI_SUCCESS;
    COLL_TRY(coll_begin_quiet(comm, &handler));
    const int error = make_private(comm, cc);
    COLL_TRY(coll_end_quiet(comm, &handler));
    return error;
}

/* The second duplicate: where a rank cannot have it, none has, for good. Keeps or frees `made`. */
static int make_plans(MPI_Comm comm, struct coll_comm *cc, struct coll_plans *made) {
    int all = 0;
    const int has = duplicate(cc->comm, &made->comm) == MPI_SUCCESS;
    const int error = all_say(cc->comm, has, &all);
    if (error == MPI_SUCCESS && all) {
        atomic_fetch_add(&live, 1);
        made->handler = MPI_ERRHANDLER_NULL;
        atomic_init(&made->origin, comm);
        atomic_init(&made->users, 1);
        cc->plans = made;
        return MPI_SUCCESS;
    }
    cc->no_plans = 1; /* a rank that has the duplicate cannot free it without the others */
    free(made);
    return error;
}

/*
 * What the persistent collectives of a communicator share, for one more of them; collective. NULL
 * where some rank says that it cannot have another, or cannot have what they share.
 */
int coll_comm_plans(MPI_Comm comm, struct coll_comm *cc, int can, struct coll_plans **plans) {
    struct coll_plans *made = NULL;
    int all = 0;
    *plans = NULL;
    if (cc->no_plans)
        return MPI_SUCCESS;
    if (cc->plans == NULL) {
        made = calloc(1, sizeof *made);
        can = can && made != NULL && atomic_load(&live) < LIVE_MOST;
    }
    int error = all_say(cc->comm, can, &all);
    if (error == MPI_SUCCESS && all && made != NULL)
        error = make_plans(comm, cc, made);
    else
        free(made);
    if (error == MPI_SUCCESS && all && cc->plans != NULL) {
        *plans = cc->plans;
        atomic_fetch_add(&cc->plans->users, 1);
    }
    return error;
}

/* The key, if there is one yet. What MPI calls when it is used may need the lock itself. */
static int present_keyval(void) {
    pthread_mutex_lock(&keyval_lock);
    const int key = keyval;
    pthread_mutex_unlock(&keyval_lock);
    return key;
}

/* The data of a communicator, if it has any, or NULL. Sends no message, and makes nothing. */
static struct coll_comm *present(MPI_Comm comm) {
    const int key = present_keyval();
    struct coll_comm *cc = NULL;
    int found = 0;
    if (key != MPI_KEYVAL_INVALID && PMPI_Comm_get_attr(comm, key, &cc, &found) != MPI_SUCCESS)
        found = 0;
    return found ? cc : NULL;
}

/* The private duplicate of a communicator, if it has one. Sends no message, and makes nothing. */
MPI_Comm coll_comm_twin(MPI_Comm comm) {
    const struct coll_comm *cc = present(comm);
    return cc == NULL ? MPI_COMM_NULL : cc->comm;
}

/* The same of its persistent collectives. */
MPI_Comm coll_comm_plans_twin(MPI_Comm comm) {
    const struct coll_comm *cc = present(comm);
    return cc == NULL || cc->plans == NULL ? MPI_COMM_NULL : cc->plans->comm;
}

/* The same of its releases by multicast. */
MPI_Comm coll_comm_multicast_twin(MPI_Comm comm) {
    const struct coll_comm *cc = present(comm);
    return cc == NULL || !cc->states->has_multicast ? MPI_COMM_NULL : cc->states->multicast;
}

/*
 * All ranks are about to free the communicator, and this is where they do together what has to be
 * done so: MPI libraries may keep the communicator, and thus our attribute, on some ranks until
 * requests on it are complete (MPICH does). What is called on it meanwhile is native.
 */
void coll_comm_end_together(MPI_Comm comm) {
    struct coll_comm *cc = present(comm);
    if (cc == NULL || cc->comm == MPI_COMM_NULL)
        return;
    cc->kind = COLL_KIND_NATIVE;
    coll_forget(comm);
    end_states(cc);
}

static struct coll_state *kept(const struct coll_comm *cc, const void *owner) {
    struct coll_state *state = cc->states->first;
    while (state != NULL && state->owner != owner)
        state = state->next;
    return state;
}

/* Put it on the list; returns where the data is. */
static void *keep(const struct coll_comm *cc, const void *owner, struct coll_state *state) {
    state->owner = owner;
    state->next = cc->states->first;
    cc->states->first = state;
    return state + 1;
}

/*
 * What a routine keeps of a communicator, by its `owner`: so many bytes, 0 when it first asks; NULL
 * if there is no memory. It ends with the communicator, and a duplicate has its own.
 */
void *coll_comm_state(const struct coll_comm *cc, const void *owner, size_t bytes) {
    struct coll_state *state = kept(cc, owner);
    if (state != NULL)
        return state + 1;
    state = calloc(1, sizeof *state + bytes);
    return state == NULL ? NULL : keep(cc, owner, state);
}

/*
 * The same on all ranks, or on none: collective over the private communicator when an owner first
 * asks. *data is NULL on all ranks if one of them has no memory, and then for all owners that ask
 * later: that rank cannot even note which owner it was. The owner then works without the memory.
 */
int coll_comm_agreed_state(const struct coll_comm *cc, const void *owner, size_t bytes,
                           void **data) {
    struct coll_state *state = kept(cc, owner);
    *data = state == NULL ? NULL : state + 1;
    if (state != NULL || cc->states->refused)
        return MPI_SUCCESS;
    int all = 0;
    state = calloc(1, sizeof *state + bytes);
    const int error = all_say(cc->comm, state != NULL, &all);
    if (error == MPI_SUCCESS && all) {
        *data = keep(cc, owner, state);
        return MPI_SUCCESS;
    }
    free(state);
    cc->states->refused = 1;
    return error;
}

/*
 * So many bytes, 0 at first, that end with the communicator: `end` gets them when all ranks are in
 * MPI_Comm_free or MPI_Comm_disconnect, and may be collective. All ranks ask for such bytes in the
 * same order. NULL if there is no memory.
 */
void *coll_comm_at_end(const struct coll_comm *cc, size_t bytes, int (*end)(void *data)) {
    struct coll_state *state = calloc(1, sizeof *state + bytes);
    if (state == NULL)
        return NULL;
    state->end = end;
    return keep(cc, NULL, state);
}

/* Free what hangs on MPI_COMM_WORLD, which MPI frees when it is too late. */
void coll_comm_leave_world(void) {
    if (present(MPI_COMM_WORLD) != NULL)
        PMPI_Comm_delete_attr(MPI_COMM_WORLD, present_keyval());
    coll_peers_part(MPI_COMM_WORLD);
}

/* And the keys, where no communicators stay. */
void coll_comm_finalize(void) {
    coll_comm_leave_world();
#ifdef COLL_ADAPTIVE
    coll_meeting_finalize();
#endif
#ifdef COLL_PATTERNS
    coll_agreement_finalize();
#endif
    coll_types_finalize();
    pthread_mutex_lock(&keyval_lock);
    if (keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&keyval);
    pthread_mutex_unlock(&keyval_lock);
}

/* MPI has ended: what it knew by numbers, they will be others' if it begins again. */
void coll_comm_restart(void) {
    pthread_mutex_lock(&keyval_lock);
    keyval = MPI_KEYVAL_INVALID;
    pthread_mutex_unlock(&keyval_lock);
    atomic_store(&live, 0);
    coll_peers_restart();
    coll_types_restart();
#ifdef COLL_ADAPTIVE
    coll_meeting_restart();
    coll_situations_restart();
#endif
#ifdef COLL_PATTERNS
    coll_agreement_restart();
#endif
    coll_forget_all();
}
