/* What the calls of this process did, in memory and in a file: see events.h. */
#ifndef COLL_TRACED
#define COLL_TRACED
#endif
#define COLL_UNTRACED
#include "coll.h"
#include "dispatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TAG = 2, PIECE = 1 << 22, COMMUNICATORS = 4096, MEMBERS = 1 << 20, SAMPLES = 2 };

/* Bytes of the events of a thread, unless LIBCOLL_EVENTS_ROOM says otherwise. */
static const double ROOM = 8 << 20;

/* Of a call there is room for this many events. */
enum { EVENTS_OF_CALL = 8 };

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

_Thread_local struct coll_events *coll_events_now;

static _Thread_local struct coll_events *own; /* of this thread, in a call or not */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coll_events *all; /* the memory of all threads, the latest first */
static uint32_t threads;        /* so far */
static pthread_key_t leaving;   /* by which a thread that ends gives back its memory */
static int has_leaving;
static struct events_part part;
static struct events_communicator *communicators;
static int32_t *members;
static struct clocks_sample samples[SAMPLES];
static MPI_Comm world = MPI_COMM_NULL; /* of the messages here; MPI_COMM_NULL: nothing is kept */

/* Events for which a thread has room: a power of two. */
static uint64_t events_of_thread(void) {
    const char *text = getenv("LIBCOLL_EVENTS_ROOM");
    double bytes = text == NULL || *text == '\0' ? ROOM : coll_bytes_of(text);
    if (bytes < 0 || bytes > (double)(1LL << 40)) {
        if (part.rank == 0 && all == NULL)
            fprintf(stderr,
                    "libcoll: LIBCOLL_EVENTS_ROOM: '%s' is ignored: expected bytes, or a "
                    "number and k, M or G\n",
                    text);
        bytes = ROOM;
    }
    uint64_t events = 2 * EVENTS_OF_CALL;
    while ((double)(2 * events * sizeof(struct events_entry)) <= bytes)
        events *= 2;
    return events;
}

/*
 * Memory of zeros. It is written to, so that no call waits for pages. It is in huge pages, where
 * the system has them: a rank that shares its processor finds each page anew in every call.
 */
static void *pages(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, bytes < HUGE_PAGE ? CACHE_LINE : HUGE_PAGE, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE); /* it is no error if there are none */
#endif
    memset(memory, 0, bytes);
    return memory;
}

/* The thread ends, and its memory is for the next one. */
static void leave(void *memory) {
    struct coll_events *events = memory;
    own = NULL;
    pthread_mutex_lock(&lock);
    events->left = 1;
    pthread_mutex_unlock(&lock);
}

/* The memory of a thread that has ended: its calls stay there until others take their place. */
static struct coll_events *left_memory(void) {
    struct coll_events *events = all;
    while (events != NULL && !events->left)
        events = events->next;
    if (events != NULL)
        events->left = 0;
    return events;
}

static struct coll_events *new_memory(void) {
    const uint64_t room = events_of_thread(), calls = room / EVENTS_OF_CALL;
    struct coll_events *events =
        pages(sizeof *events + calls * sizeof *events->calls + room * sizeof *events->entries);
    if (events == NULL)
        return NULL;
    events->calls = (struct events_call *)(events + 1);
    events->entries = (struct events_entry *)(events->calls + calls);
    events->mask = room - 1;
    events->call_mask = calls - 1;
    events->next = all;
    all = events;
    return events;
}

static struct coll_events *memory_of_thread(void) {
    pthread_mutex_lock(&lock);
    struct coll_events *events = left_memory();
    if (events == NULL)
        events = new_memory();
    if (events != NULL)
        events->thread = threads++;
    pthread_mutex_unlock(&lock);
    if (events != NULL && has_leaving)
        pthread_setspecific(leaving, events);
    return events;
}

/*
 * What is kept of a communicator: its place in the table and 1, and how many calls there were, and
 * were kept.
 */
struct known {
    uint32_t place, calls, kept;
};

/*
 * Of so many calls on a communicator the last one is kept: LIBCOLL_EVENTS_EACH, alike on all ranks
 * (peers.c sees to that).
 */
static uint32_t each = 1;

static uint32_t each_of_setting(void) {
    const char *text = getenv("LIBCOLL_EVENTS_EACH");
    const double number = text == NULL || *text == '\0' ? 1 : coll_bytes_of(text);
    if (number >= 1 && number <= UINT32_MAX)
        return (uint32_t)number;
    coll_complain("LIBCOLL_EVENTS_EACH", text, "expected a number, 1 or more");
    return 1;
}

/* Said by one process, and once: more room for events would not help. */
static void complain_of_communicators(void) {
    static int said;
    if (part.rank == 0 && !said)
        fprintf(stderr,
                "libcoll: LIBCOLL_EVENTS: calls on further communicators are not kept: of a "
                "process there is room for %d, freed ones included, and for %d ranks in them\n",
                COMMUNICATORS, MEMBERS);
    said = 1;
}

/* Collective calls on the same ranks have an order, so all of them count alike. */
static uint32_t add_communicator(const struct coll_comm *cc) {
    MPI_Group group, of_world;
    uint64_t *used = &part.counts[EVENTS_COMMUNICATORS], *end = &part.counts[EVENTS_MEMBERS];
    if (*used >= COMMUNICATORS || *end + (uint64_t)cc->size > MEMBERS) {
        complain_of_communicators();
        return 0;
    }
    struct events_communicator *one = &communicators[*used];
    int *numbers = malloc((size_t)cc->size * sizeof *numbers);
    if (numbers == NULL)
        return 0;
    *one = (struct events_communicator){
        .hash = 14695981039346656037u, .first = (int32_t)*end, .size = cc->size, .rank = cc->rank};
    for (int i = 0; i < cc->size; ++i)
        numbers[i] = i;
    PMPI_Comm_group(cc->comm, &group);
    PMPI_Comm_group(world, &of_world);
    PMPI_Group_translate_ranks(group, cc->size, numbers, of_world, members + *end);
    PMPI_Group_free(&group);
    PMPI_Group_free(&of_world);
    free(numbers);
    for (int i = 0; i < cc->size; ++i)
        one->hash = (one->hash ^ (uint64_t)(uint32_t)members[*end + (uint64_t)i]) * 1099511628211u;
    for (uint64_t i = 0; i < *used; ++i)
        one->ordinal += communicators[i].hash == one->hash && communicators[i].size == one->size;
    *end += (uint64_t)cc->size;
    return (uint32_t)++ * used;
}

static struct known *know(const struct coll_comm *cc) {
    static const char owner;
    struct known *known = coll_comm_state(cc, &owner, sizeof *known);
    if (known != NULL && known->place == 0) {
        pthread_mutex_lock(&lock);
        known->place = add_communicator(cc);
        pthread_mutex_unlock(&lock);
    }
    return known != NULL && known->place != 0 ? known : NULL;
}

struct coll_events *coll_events_begin(const struct coll_routine *routine,
                                      const struct coll_call *call, const struct coll_comm *cc) {
    if (world == MPI_COMM_NULL || coll_events_now != NULL)
        return NULL;
    if (own == NULL)
        own = memory_of_thread();
    struct known *known = know(cc);
    if (known != NULL && ++known->calls % each != 0)
        return NULL;
    const uint32_t sequence = known == NULL ? 0 : known->kept++; /* the same on all ranks */
    if (own == NULL || known == NULL) {
        __atomic_fetch_add(&part.lost, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    struct events_call *entry = &own->calls[own->call_count++ & own->call_mask];
    *entry = (struct events_call){
        .first = own->count,
        .bytes = call->bytes,
        .communicator = known->place - 1,
        .sequence = sequence,
        .routine = (int32_t)(routine - coll_routines),
        .root = coll_descriptors[call->collective].rooted ? call->root : -1,
        .thread = own->thread,
    };
    own->cc = cc;
    coll_events_now = own;
    entry->begun = clocks_of_system();
    return own;
}

void coll_events_end(struct coll_events *events) {
    if (events == NULL)
        return;
    struct events_call *entry = &events->calls[(events->call_count - 1) & events->call_mask];
    entry->ended = clocks_of_system();
    const uint64_t count = events->count - entry->first;
    entry->count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    coll_events_now = NULL;
}

void coll_event_at(enum coll_event_type type, int a, int b, int64_t time) {
    struct coll_events *events = coll_events_now;
    if (events == NULL)
        return;
    const int64_t now = clocks_of_system();
    const uint64_t first = events->calls[(events->call_count - 1) & events->call_mask].first;
    const uint64_t count = ++events->count, room = events->mask + 1;
    uint64_t place = count - 1;
    const int64_t at = time == 0 || time > now ? now : time;
    for (; place > first && count - place < room; --place) {
        const struct events_entry *before = &events->entries[(place - 1) & events->mask];
        if (before->time <= at)
            break;
        events->entries[place & events->mask] = *before;
    }
    events->entries[place & events->mask] =
        (struct events_entry){at, a, (uint32_t)type | (uint32_t)b << 8};
}

int coll_traced_run(const struct coll_routine *routine, const struct coll_call *call,
                    struct coll_comm *cc, const struct coll_parameters *parameters) {
    if ((routine->constraints & COLL_UNPREPARED) ||
        (call->bytes == 0 && !coll_descriptors[call->collective].unsized))
        return coll_run(routine, call, cc, parameters);
    COLL_TRY(coll_comm_private(call->comm, cc));
    if (cc->kind == COLL_KIND_NATIVE)
        return coll_run(routine, call, cc, parameters);
    struct coll_events *events = coll_events_begin(routine, call, cc);
    const int error = coll_run(routine, call, cc, parameters);
    coll_events_end(events);
    return error;
}

int coll_traced_part(const struct coll_parameters *parameters, int which, struct coll_call part,
                     const struct coll_comm *cc) {
    coll_event(COLL_EVENT_PART, (int)part.collective, which);
    const int error = coll_run_part(parameters, which, part, cc);
    coll_event(COLL_EVENT_PART, -1, which);
    return error;
}

void coll_stamp_of(enum coll_stamp what, int phase, int position, int rank) {
    (void)position;
    if (what == COLL_STAMP_STARTED || what == COLL_STAMP_ARRIVED)
        coll_event(what == COLL_STAMP_STARTED ? COLL_EVENT_STARTED : COLL_EVENT_ARRIVED, rank,
                   phase);
}

/* A step may have no message at one of its ends: then there is no event, and no rank. */
void coll_stamp(enum coll_stamp what, int phase, int position) {
    if (coll_events_now == NULL || position < 0)
        return;
    const int *rank_of = coll_events_now->cc->rank_of;
    coll_stamp_of(what, phase, position, rank_of == NULL ? position : rank_of[position]);
}

/*
 * Whether all ranks come here: with another library, or with other settings, some may not. Nobody
 * is asked, as those do not answer.
 */
static int all_keep_events(void) {
    int size = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    return size == 1 || coll_peers_are_alike(MPI_COMM_WORLD);
}

/*
 * All ranks must be able to, or none keeps anything; so it is where their libraries or settings
 * differ. Spawned processes keep nothing.
 */
void coll_events_open(void) {
    MPI_Comm parent = MPI_COMM_NULL;
    if (!all_keep_events())
        return;
    communicators = malloc(COMMUNICATORS * sizeof *communicators);
    members = malloc(MEMBERS * sizeof *members);
    int can = communicators != NULL && members != NULL, everywhere = 0;
    PMPI_Allreduce(&can, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    PMPI_Comm_get_parent(&parent);
    if (!everywhere || parent != MPI_COMM_NULL)
        return;
    each = each_of_setting();
    part = (struct events_part){.version = EVENTS_VERSION, .endian = EVENTS_ENDIAN};
    memcpy(part.magic, "sgevent\n", sizeof part.magic);
    PMPI_Comm_dup(MPI_COMM_WORLD, &world);
    PMPI_Comm_rank(world, &part.rank);
    PMPI_Comm_size(world, &part.ranks);
    gethostname(part.host, sizeof part.host - 1);
    const char *host = getenv("LIBCOLL_HOST");
    if (host != NULL && *host != '\0')
        snprintf(part.host, sizeof part.host, "%s", host);
    snprintf(part.cluster, sizeof part.cluster, "%s", coll_cluster_name);
    clocks_identify(part.clock, part.host);
    if (clocks_compare(world, part.clock, clocks_of_system, &samples[0]))
        part.counts[EVENTS_SAMPLES] = 1;
    has_leaving = pthread_key_create(&leaving, leave) == 0;
    own = memory_of_thread();
    part.begun = clocks_of_system();
}

static int is_kept(const struct coll_events *events, uint64_t call) {
    const struct events_call *entry = &events->calls[call & events->call_mask];
    return entry->ended != 0 && entry->first + events->mask + 1 >= events->count;
}

/* The first call of a thread that is still there, with all of its events. */
static uint64_t first_kept(const struct coll_events *events) {
    const uint64_t room = events->call_mask + 1;
    uint64_t call = events->call_count > room ? events->call_count - room : 0;
    while (call < events->call_count && !is_kept(events, call))
        ++call;
    return call;
}

struct buffer {
    char *data;
    size_t used;
};

static void put(struct buffer *buffer, const void *data, size_t bytes) {
    if (bytes > 0)
        memcpy(buffer->data + buffer->used, data, bytes);
    buffer->used += bytes;
}

static void count_calls(void) {
    for (const struct coll_events *one = all; one != NULL; one = one->next) {
        const uint64_t first = first_kept(one);
        part.overwritten += first;
        for (uint64_t call = first; call < one->call_count; ++call) {
            part.counts[EVENTS_CALLS] += is_kept(one, call);
            if (is_kept(one, call))
                part.counts[EVENTS_ENTRIES] += one->calls[call & one->call_mask].count;
        }
    }
}

static void put_calls(struct buffer *buffer) {
    uint64_t place = 0;
    for (const struct coll_events *one = all; one != NULL; one = one->next) {
        for (uint64_t call = first_kept(one); call < one->call_count; ++call) {
            struct events_call entry = one->calls[call & one->call_mask];
            entry.first = place;
            place += entry.count;
            if (is_kept(one, call))
                put(buffer, &entry, sizeof entry);
            else
                place -= entry.count;
        }
    }
}

static void put_entries(struct buffer *buffer) {
    for (const struct coll_events *one = all; one != NULL; one = one->next)
        for (uint64_t call = first_kept(one); call < one->call_count; ++call) {
            const struct events_call *entry = &one->calls[call & one->call_mask];
            for (uint32_t i = 0; is_kept(one, call) && i < entry->count; ++i)
                put(buffer, &one->entries[(entry->first + i) & one->mask], sizeof *one->entries);
        }
}

/* The part of this rank as it is written; without data if there is no memory. */
static struct buffer part_of_rank(void) {
    const size_t sizes[EVENTS_SECTIONS] = {
        EVENTS_NAME,     sizeof *communicators,      sizeof *members,
        sizeof *samples, sizeof(struct events_call), sizeof(struct events_entry)};
    struct buffer buffer = {.used = 0};
    count_calls();
    part.counts[EVENTS_ROUTINES] = (uint64_t)coll_routine_count;
    size_t bytes = sizeof part;
    for (int i = 0; i < EVENTS_SECTIONS; ++i)
        bytes += part.counts[i] * sizes[i];
    buffer.data = malloc(bytes);
    if (buffer.data == NULL)
        return buffer;
    put(&buffer, &part, sizeof part);
    for (int i = 0; i < coll_routine_count; ++i) {
        char name[EVENTS_NAME] = "";
        snprintf(name, sizeof name, "%s/%s", coll_collective_names[coll_routines[i].collective],
                 coll_routines[i].name);
        put(&buffer, name, sizeof name);
    }
    put(&buffer, communicators, part.counts[EVENTS_COMMUNICATORS] * sizeof *communicators);
    put(&buffer, members, part.counts[EVENTS_MEMBERS] * sizeof *members);
    put(&buffer, samples, part.counts[EVENTS_SAMPLES] * sizeof *samples);
    put_calls(&buffer);
    put_entries(&buffer);
    return buffer;
}

static void send_part(const struct buffer *buffer) {
    uint64_t bytes = buffer->data == NULL ? 0 : buffer->used;
    PMPI_Send(&bytes, 1, MPI_UINT64_T, 0, TAG, world);
    for (uint64_t place = 0; place < bytes; place += PIECE) {
        const uint64_t rest = bytes - place;
        PMPI_Send(buffer->data + place, rest < PIECE ? (int)rest : PIECE, MPI_BYTE, 0, TAG, world);
    }
}

/* Write unless there was an error before; returns the first error, as a number of the system's. */
static int write_more(FILE *file, const void *data, size_t bytes, int error) {
    return error != 0 || fwrite(data, 1, bytes, file) == bytes ? error : errno;
}

/* A file that cannot be written is read to its end nevertheless: the others wait to send. */
static int receive_part(int from, FILE *file, char *piece, int error) {
    uint64_t bytes;
    PMPI_Recv(&bytes, 1, MPI_UINT64_T, from, TAG, world, MPI_STATUS_IGNORE);
    for (uint64_t place = 0; place < bytes; place += PIECE) {
        const uint64_t rest = bytes - place;
        const int count = rest < PIECE ? (int)rest : PIECE;
        PMPI_Recv(piece, count, MPI_BYTE, from, TAG, world, MPI_STATUS_IGNORE);
        error = write_more(file, piece, (size_t)count, error);
    }
    return error;
}

static void write_parts(const struct buffer *buffer) {
    const char *name = getenv("LIBCOLL_EVENTS");
    if (name == NULL || *name == '\0')
        name = "libcoll.events";
    FILE *file = fopen(name, "wb");
    int error = file == NULL ? errno : buffer->data == NULL ? ENOMEM : 0;
    char *piece = malloc(PIECE);
    if (piece == NULL)
        PMPI_Abort(world, 1);
    error = write_more(file, buffer->data, buffer->used, error);
    for (int rank = 1; rank < part.ranks; ++rank)
        error = receive_part(rank, file, piece, error);
    free(piece);
    if (file != NULL && fclose(file) != 0 && error == 0)
        error = errno;
    if (error != 0)
        fprintf(stderr, "libcoll: LIBCOLL_EVENTS: cannot write %s: %s\n", name, strerror(error));
}

/* Collective, at MPI_Finalize: rank 0 writes what all ranks kept. */
void coll_events_write(void) {
    if (world == MPI_COMM_NULL)
        return;
    part.ended = clocks_of_system();
    if (clocks_compare(world, part.clock, clocks_of_system, &samples[1]))
        part.counts[EVENTS_SAMPLES] = SAMPLES;
    struct buffer buffer = part_of_rank();
    if (part.rank == 0)
        write_parts(&buffer);
    else
        send_part(&buffer);
    free(buffer.data);
    PMPI_Comm_free(&world);
}
