/*
 * What a process knows of others: which hosts they are on, and whether their library is like its
 * own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"

/*
 * Processes that meet for the first time introduce themselves: all of MPI_COMM_WORLD in
 * MPI_Init, those of a session's communicator when it is made, and the two sides of an
 * intercommunicator when they are merged. All other communicators have a part of such a circle, so
 * what a call needs to know of their ranks is known without a message.
 */
struct circle {
    MPI_Comm comm; /* of which they are the ranks; the circle ends with it */
    MPI_Group group;
    int size;
    int *hosts;               /* [rank] -> as coll_cluster_self says */
    int *like;                /* [rank] -> the lowest rank that has a library like its own */
    char (*names)[COLL_NAME]; /* of the hosts that are not known, for LIBCOLL_TRACE; or NULL */
    struct circle *next;
};

static struct circle *circles;
static pthread_mutex_t circles_lock = PTHREAD_MUTEX_INITIALIZER;

/* What must be set alike on all ranks. A switch that is 0 is not set. */
static const struct {
    const char *name;
    int is_switch;
} alike[] = {
    {"LIBCOLL_DISABLE", 1},   {"LIBCOLL_DETERMINISTIC", 1}, {"LIBCOLL_HOST_BUFFERS", 1},
    {"LIBCOLL_FORCE", 0},     {"LIBCOLL_SCRATCH", 0},       {"LIBCOLL_PLACEMENT", 0},
    {"LIBCOLL_MULTICAST", 1}, {"LIBCOLL_SHORT_CALLS", 0},
};

enum { ALIKE = sizeof alike / sizeof alike[0] };

/* All builds tell as many bytes: what only some builds have shares the place of another setting. */
enum { DETERMINISTIC = 1, SCRATCH = 4 };
static const struct {
    const char *name;
    int place;
} sharing[] = {
#ifdef COLL_ADAPTIVE
    {"LIBCOLL_ADAPTIVE", DETERMINISTIC},
#endif
#ifdef COLL_TRACED
    {"LIBCOLL_EVENTS_EACH", SCRATCH},
#endif
    {NULL, ALIKE},
};

/* What a rank tells: 72 bytes. */
struct introduction {
    uint64_t build;
    uint32_t settings[ALIKE];
    int32_t host;
    char name[COLL_NAME];
};

_Static_assert(sizeof(struct introduction) == 72, "the docs say how many bytes ranks exchange");

/*
 * An MPI library may take buffers on a GPU on some nodes only. There that counts like the setting
 * that overrules it, and ranks that set it are alike again.
 */
static uint32_t default_of(const char *name) {
    const char *support = strcmp(name, "LIBCOLL_HOST_BUFFERS") == 0 ? coll_gpu_support() : NULL;
    return support == NULL ? 0 : coll_hash(support);
}

static uint32_t setting_of(int number) {
    const char *value = getenv(alike[number].name);
    if (value == NULL || value[0] == '\0' || (alike[number].is_switch && strcmp(value, "0") == 0))
        return default_of(alike[number].name);
    return coll_hash(value);
}

/* As they are in force, from the first meeting on: a program may change its environment. */
static uint32_t settings[ALIKE];

static void read_settings(void) {
    for (int i = 0; i < ALIKE; ++i)
        settings[i] = setting_of(i);
    for (int i = 0; sharing[i].name != NULL; ++i) {
        const char *value = getenv(sharing[i].name);
        uint32_t *place = &settings[sharing[i].place];
        if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0)
            *place = 31 * *place + coll_hash(value);
    }
}

static struct introduction introduction(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct introduction mine = {.build = coll_build};
    pthread_once(&once, read_settings);
    memcpy(mine.settings, settings, sizeof settings);
    mine.host = coll_cluster_self(mine.name);
    return mine;
}

static int is_like(const struct introduction *one, const struct introduction *other) {
    return one->build == other->build &&
           memcmp(one->settings, other->settings, sizeof one->settings) == 0;
}

/* Names of what differs, one after the other. */
static void list_differences(const struct introduction *one, const struct introduction *other,
                             char *text, size_t room) {
    size_t used = (size_t)snprintf(text, room, "%s",
                                   one->build == other->build ? "" : " the build of libcoll");
    for (int i = 0; i < ALIKE && used < room; ++i) {
        if (one->settings[i] == other->settings[i])
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s %s", used == 0 ? "" : ",",
                                 alike[i].name);
        for (int k = 0; sharing[k].name != NULL && used < room; ++k)
            if (sharing[k].place == i)
                used += (size_t)snprintf(text + used, room - used, " (or %s)", sharing[k].name);
    }
}

/* Said by one process, and once, however many communicators there are. */
static void complain(MPI_Comm comm, int rank, const struct introduction *first,
                     const struct introduction *other) {
    static atomic_int said;
    char name[MPI_MAX_OBJECT_NAME] = "", differences[256];
    int length, own;
    if (PMPI_Comm_rank(comm, &own) != MPI_SUCCESS || own != 0 || atomic_exchange(&said, 1))
        return;
    PMPI_Comm_get_name(comm, name, &length);
    list_differences(first, other, differences, sizeof differences);
    fprintf(stderr,
            "libcoll: rank %d of %s differs from rank 0 in%s: communicators that have both are "
            "left to the MPI library\n",
            rank, name[0] == '\0' ? "a communicator" : name, differences);
}

/* Which ranks have the same library. One look at each rank where all have. */
static void compare(MPI_Comm comm, struct circle *circle, const struct introduction *all) {
    int unlike = -1;
    for (int rank = circle->size - 1; rank >= 0; --rank) {
        int other = 0;
        while (!is_like(&all[other], &all[rank]))
            ++other;
        circle->like[rank] = other;
        unlike = other == 0 ? unlike : rank;
    }
    if (unlike >= 0)
        complain(comm, unlike, &all[0], &all[unlike]);
}

static void discard(struct circle *circle) {
    free(circle->hosts);
    free(circle->names);
    free(circle);
}

static struct circle *new_circle(int size) {
    struct circle *circle = calloc(1, sizeof *circle);
    if (circle == NULL)
        return NULL;
    circle->comm = MPI_COMM_NULL;
    circle->group = MPI_GROUP_NULL;
    circle->size = size;
    circle->hosts = malloc(2 * (size_t)size * sizeof *circle->hosts);
    if (getenv("LIBCOLL_TRACE") != NULL)
        circle->names = malloc((size_t)size * sizeof *circle->names);
    if (circle->hosts == NULL) {
        discard(circle);
        return NULL;
    }
    circle->like = circle->hosts + size;
    return circle;
}

/*
 * What goes wrong on the application's communicator while we set up ours is not to end a program
 * that would run natively: its errors return meanwhile. `coll_end_quiet` gives its handler back,
 * unless another thread has set one meanwhile: that one stays. Where that one is MPI_ERRORS_RETURN,
 * or is set just while the handler is given back, nothing tells, and the earlier one returns. What
 * goes wrong in other threads on the communicator meanwhile returns as well.
 */
int coll_begin_quiet(MPI_Comm comm, MPI_Errhandler *handler) {
    COLL_TRY(PMPI_Comm_get_errhandler(comm, handler));
    return PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

int coll_end_quiet(MPI_Comm comm, MPI_Errhandler *handler) {
    MPI_Errhandler present;
    COLL_TRY(PMPI_Comm_get_errhandler(comm, &present));
    if (present == MPI_ERRORS_RETURN)
        COLL_TRY(PMPI_Comm_set_errhandler(comm, *handler));
    COLL_TRY(PMPI_Errhandler_free(&present));
    return PMPI_Errhandler_free(handler);
}

static int tell_all(MPI_Comm comm, struct introduction *all) {
    MPI_Errhandler handler;
    const struct introduction mine = introduction();
    COLL_TRY(coll_begin_quiet(comm, &handler));
    const int error =
        PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm);
    COLL_TRY(coll_end_quiet(comm, &handler));
    return error;
}

/* The ranks of a communicator as a circle, which nothing knows yet. Collective. */
static int introduce(MPI_Comm comm, struct circle **circle) {
    int size;
    COLL_TRY(PMPI_Comm_size(comm, &size));
    struct introduction *all = malloc((size_t)size * sizeof *all);
    *circle = new_circle(size);
    int error = all == NULL || *circle == NULL ? MPI_ERR_NO_MEM : tell_all(comm, all);
    for (int rank = 0; rank < size && error == MPI_SUCCESS; ++rank) {
        (*circle)->hosts[rank] = all[rank].host;
        if ((*circle)->names != NULL)
            memcpy((*circle)->names[rank], all[rank].name, COLL_NAME);
    }
    if (error == MPI_SUCCESS)
        compare(comm, *circle, all);
    else if (*circle != NULL)
        discard(*circle);
    free(all);
    return error;
}

int coll_peers_meet(MPI_Comm comm) {
    int size;
    struct circle *circle;
    COLL_TRY(PMPI_Comm_size(comm, &size));
    if (size == 1)
        return MPI_SUCCESS;
    COLL_TRY(introduce(comm, &circle));
    circle->comm = comm;
    const int error = PMPI_Comm_group(comm, &circle->group);
    if (error != MPI_SUCCESS) {
        discard(circle);
        return error;
    }
    pthread_mutex_lock(&circles_lock);
    circle->next = circles;
    circles = circle;
    pthread_mutex_unlock(&circles_lock);
    return MPI_SUCCESS;
}

static struct circle *take_out(MPI_Comm comm) {
    pthread_mutex_lock(&circles_lock);
    struct circle **link = &circles;
    while (*link != NULL && (*link)->comm != comm)
        link = &(*link)->next;
    struct circle *circle = *link;
    if (circle != NULL)
        *link = circle->next;
    pthread_mutex_unlock(&circles_lock);
    return circle;
}

void coll_peers_part(MPI_Comm comm) {
    struct circle *circle = take_out(comm);
    if (circle == NULL)
        return;
    PMPI_Group_free(&circle->group);
    discard(circle);
}

int coll_peers_are_alike(MPI_Comm comm) {
    int alike_all = 0;
    pthread_mutex_lock(&circles_lock);
    for (const struct circle *circle = circles; circle != NULL; circle = circle->next) {
        if (circle->comm != comm)
            continue;
        alike_all = 1;
        for (int rank = 0; rank < circle->size; ++rank)
            alike_all &= circle->like[rank] == 0;
    }
    pthread_mutex_unlock(&circles_lock);
    return alike_all;
}

void coll_peers_restart(void) {
    pthread_mutex_lock(&circles_lock);
    while (circles != NULL) {
        struct circle *circle = circles;
        circles = circle->next;
        discard(circle);
    }
    pthread_mutex_unlock(&circles_lock);
}

/* Fill ranks[rank here] with the rank in a circle, and return whether all are in it. */
static int is_part(const struct circle *circle, MPI_Group group, int size, const int *own,
                   int *ranks) {
    if (size > circle->size ||
        PMPI_Group_translate_ranks(group, size, own, circle->group, ranks) != MPI_SUCCESS)
        return 0;
    for (int rank = 0; rank < size; ++rank)
        if (ranks[rank] == MPI_UNDEFINED)
            return 0;
    return 1;
}

static void read_circle(const struct circle *circle, const int *ranks, int size,
                        struct coll_peers *peers) {
    peers->unlike = peers->stranger = -1;
    for (int rank = size - 1; rank >= 0; --rank) {
        peers->hosts[rank] = circle->hosts[ranks[rank]];
        if (peers->hosts[rank] < 0)
            peers->stranger = rank;
        if (circle->like[ranks[rank]] != circle->like[ranks[0]])
            peers->unlike = rank;
    }
    peers->name[0] = '\0';
    if (peers->stranger >= 0 && circle->names != NULL)
        memcpy(peers->name, circle->names[ranks[peers->stranger]], COLL_NAME);
}

/* Whether a circle has all ranks of a group; if so, read it. `ranks` has room for twice as many. */
static int find_circle(MPI_Group group, int size, int *ranks, struct coll_peers *peers) {
    int found = 0;
    int *own = ranks + size;
    for (int rank = 0; rank < size; ++rank)
        own[rank] = rank;
    pthread_mutex_lock(&circles_lock);
    for (const struct circle *circle = circles; circle != NULL && !found; circle = circle->next) {
        found = is_part(circle, group, size, own, ranks);
        if (found)
            read_circle(circle, ranks, size, peers);
    }
    pthread_mutex_unlock(&circles_lock);
    return found;
}

/*
 * Ranks that no circle has introduce themselves here, in a call. No table or setting of a rank may
 * decide whether they do: others may have other ones. Nor are they a circle for later: where two
 * threads use the communicator and a part of it, some ranks would have it already, and some not.
 */
int coll_peers_of(MPI_Comm comm, int size, struct coll_peers *peers) {
    MPI_Group group;
    struct circle *circle;
    int *ranks = malloc(2 * (size_t)size * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    int error = PMPI_Comm_group(comm, &group);
    int found = 0;
    if (error == MPI_SUCCESS) {
        found = find_circle(group, size, ranks, peers);
        error = PMPI_Group_free(&group);
    }
    if (error == MPI_SUCCESS && !found) {
        error = introduce(comm, &circle);
        if (error == MPI_SUCCESS) {
            read_circle(circle, ranks + size, size, peers);
            discard(circle);
        }
    }
    free(ranks);
    return error;
}
