/*
 * Communicators: named alike on all of their ranks, without a message. A name is the ranks of
 * MPI_COMM_WORLD that are members, and how many communicators of the same members were made
 * before. A communicator is named when it is made, which its members do in the same order.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

/* The latest of each thread; none if any communicator was freed since, whose handle may return. */
struct latest {
    MPI_Comm comm;
    unsigned freed;
    struct recorder_communicator *found;
};

static _Thread_local struct latest latest;
static atomic_uint freed;
static int key = MPI_KEYVAL_INVALID;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct recorder_communicator recorder_no_room;

static int forget(MPI_Comm comm, int which, void *value, void *extra) {
    (void)comm;
    (void)which;
    (void)value;
    (void)extra;
    atomic_fetch_add(&freed, 1);
    return MPI_SUCCESS;
}

void recorder_begin_communicators(void) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
}

/* The ranks of a group in MPI_COMM_WORLD; -1 for those of other worlds. */
static void translate(MPI_Group group, int size, int32_t *members) {
    MPI_Group world;
    int *own = malloc((size_t)size * sizeof *own);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; own != NULL && i < size; ++i)
        own[i] = i;
    if (own != NULL)
        PMPI_Group_translate_ranks(group, size, own, world, members);
    for (int i = 0; i < size; ++i)
        if (own == NULL || members[i] == MPI_UNDEFINED)
            members[i] = -1;
    PMPI_Group_free(&world);
    free(own);
}

static uint64_t hash_of(const int32_t *members, int count, int split) {
    uint64_t hash = 0xCBF29CE484222325u ^ (uint64_t)split;
    for (int i = 0; i < count; ++i)
        hash = (hash ^ (uint32_t)members[i]) * 0x100000001B3u;
    return hash;
}

/* Both groups of an intercommunicator list the same one first: the one with the lowest rank. */
static int comes_first(const int32_t *own, int size, const int32_t *other, int count) {
    int32_t least = INT32_MAX, least_other = INT32_MAX;
    for (int i = 0; i < size; ++i)
        least = own[i] < least ? own[i] : least;
    for (int i = 0; i < count; ++i)
        least_other = other[i] < least_other ? other[i] : least_other;
    return least <= least_other;
}

/* Members of both groups, as they are to be listed; NULL if there is no memory. */
static int32_t *members_of(MPI_Comm comm, struct recorder_communicator *one) {
    MPI_Group group;
    const int all = one->size + one->remote;
    int32_t *members = malloc((size_t)all * 2 * sizeof *members), *read = members + all;
    if (members == NULL)
        return NULL;
    PMPI_Comm_group(comm, &group);
    translate(group, one->size, read);
    PMPI_Group_free(&group);
    one->is_first = 1;
    if (one->remote > 0) {
        PMPI_Comm_remote_group(comm, &group);
        translate(group, one->remote, read + one->size);
        PMPI_Group_free(&group);
        one->is_first = comes_first(read, one->size, read + one->size, one->remote);
    }
    const int before = one->is_first ? 0 : one->remote;
    memcpy(members + before, read, (size_t)one->size * sizeof *members);
    memcpy(members + (one->is_first ? one->size : 0), read + one->size,
           (size_t)one->remote * sizeof *members);
    return members;
}

/* The latest communicator with the same members, or NULL. */
static struct recorder_communicator *twin_of(const struct recorder_communicator *one) {
    uint64_t count = recorder_filled(recorder_store, RECORDER_COMMUNICATORS);
    while (count-- > 0) {
        struct recorder_communicator *other = recorder_entry(RECORDER_COMMUNICATORS, count);
        if (other->hash == one->hash && other->size + other->remote == one->size + one->remote)
            return other;
    }
    return NULL;
}

static struct recorder_communicator *add(const struct recorder_communicator *draft,
                                         const int32_t *members) {
    const struct recorder_communicator *twin = twin_of(draft);
    const uint64_t count = (uint64_t)(draft->size + draft->remote);
    uint64_t index, first = 0;
    if (twin == NULL) {
        int32_t *kept = recorder_take(RECORDER_MEMBERS, count, &first);
        if (kept == NULL)
            return NULL;
        memcpy(kept, members, count * sizeof *kept);
    }
    struct recorder_communicator *one = recorder_take(RECORDER_COMMUNICATORS, 1, &index);
    if (one == NULL)
        return NULL;
    one->first = twin == NULL ? first : twin->first;
    one->ordinal = twin == NULL ? 0 : twin->ordinal + 1;
    one->rank = draft->rank;
    one->size = draft->size;
    one->remote = draft->remote;
    one->is_first = draft->is_first;
    one->hash = draft->hash;
    return one;
}

static struct recorder_communicator *enlist(MPI_Comm comm) {
    struct recorder_communicator draft = {0}, *one = NULL;
    int is_inter = 0;
    PMPI_Comm_rank(comm, &draft.rank);
    PMPI_Comm_size(comm, &draft.size);
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter)
        PMPI_Comm_remote_size(comm, &draft.remote);
    int32_t *members = members_of(comm, &draft);
    if (members != NULL) {
        draft.hash = hash_of(members, draft.size + draft.remote,
                             is_inter ? (draft.is_first ? draft.size : draft.remote) : 0);
        pthread_mutex_lock(&mutex);
        one = add(&draft, members);
        pthread_mutex_unlock(&mutex);
    }
    free(members);
    if (one == NULL)
        one = &recorder_no_room;
    PMPI_Comm_set_attr(comm, key, one);
    return one;
}

/*
 * If the communicator has been freed, MPI calls an error handler. If that is a function that comes
 * back, MPICH returns no error, and no answer.
 */
struct recorder_communicator *recorder_find(MPI_Comm comm) {
    const unsigned now = atomic_load_explicit(&freed, memory_order_acquire);
    if (latest.found == NULL || latest.comm != comm || latest.freed != now) {
        struct recorder_communicator *found;
        int exists = -1;
        if (PMPI_Comm_get_attr(comm, key, &found, &exists) != MPI_SUCCESS || exists < 0)
            return NULL;
        latest = (struct latest){comm, now, exists ? found : enlist(comm)};
    }
    return latest.found;
}

/* For a communicator that was made just now. */
void recorder_name(MPI_Comm comm) {
    if (atomic_load(&recorder_active) && comm != MPI_COMM_NULL)
        recorder_find(comm);
}
