/*
 * With TRACE=1: what happens within the library's calls, and when. Every thread keeps the events
 * of its latest calls in memory; MPI_Finalize writes them. `stagegen inspect` reads the file, whose
 * form is here: docs/interfaces.md says it in words.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdint.h>

#include "clocks.h"

enum {
    EVENTS_VERSION = 2,
    EVENTS_ENDIAN = 0x01020304,
    EVENTS_NAME = 128, /* letters of a routine's name */
    EVENTS_TYPE = 0xff /* of `what`: its type; what is above it is the event's b */
};

/* Times are nanoseconds of the process's clock (CLOCK_MONOTONIC). */
struct events_entry {
    int64_t time;
    int32_t a;
    uint32_t what; /* the type, and b times 256 */
};

struct events_call {
    int64_t begun, ended;
    uint64_t first; /* of its events; in the file: where they begin */
    int64_t bytes;
    uint32_t count; /* of its events */
    uint32_t communicator, sequence;
    int32_t routine; /* place in the table of routines */
    int32_t root;
    uint32_t thread;
};

struct events_communicator {
    uint64_t hash; /* of its members */
    int32_t first, size, rank;
    uint32_t ordinal; /* how many communicators of the same members were made before */
};

enum events_sections {
    EVENTS_ROUTINES,
    EVENTS_COMMUNICATORS,
    EVENTS_MEMBERS, /* ranks of MPI_COMM_WORLD */
    EVENTS_SAMPLES,
    EVENTS_CALLS,
    EVENTS_ENTRIES,
    EVENTS_SECTIONS
};

/* The part of a rank in the file: this, then its sections. */
struct events_part {
    char magic[8];
    uint32_t version, endian;
    int32_t rank, ranks;
    int64_t begun, ended; /* after MPI_Init, in MPI_Finalize */
    uint64_t overwritten; /* calls that later ones have overwritten */
    uint64_t lost;        /* calls that were not kept for lack of memory */
    char host[CLOCKS_NAME], clock[CLOCKS_NAME], cluster[CLOCKS_NAME];
    uint64_t counts[EVENTS_SECTIONS];
};

/* A receive on its way. */
struct events_awaited {
    MPI_Request request;
    int from, tag;
    uint64_t call; /* the number of the call that has used the place; 0: none */
};

enum { EVENTS_AWAITED = 64, EVENTS_AWAITED_MORE = 4096 };

/*
 * The memory of a thread: rings, whose rooms are powers of two, and receives, in a table of a few
 * lines or, if there are many, in the longer one.
 */
struct coll_events {
    struct events_entry *entries;
    uint64_t mask, count; /* of entries: room - 1; all so far */
    struct events_call *calls;
    uint64_t call_mask, call_count;
    const struct coll_comm *cc; /* of the present call */
    uint32_t thread;
    int left; /* its thread has ended */
    struct coll_events *next;
    struct events_awaited awaited[EVENTS_AWAITED], more[EVENTS_AWAITED_MORE];
};

/* The memory of this thread while it is in a call, else NULL. */
extern _Thread_local struct coll_events *coll_events_now
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline void coll_event(enum coll_event_type type, int a, int b) {
    struct coll_events *events = coll_events_now;
    if (events == NULL)
        return;
    struct events_entry *entry = &events->entries[events->count++ & events->mask];
    entry->time = clocks_of_system();
    entry->a = a;
    entry->what = (uint32_t)type | (uint32_t)b << 8;
}

/* Whether the events of the present call are kept. */
static inline int coll_keeps_events(void) {
    return coll_events_now != NULL;
}

/* Store what the clock shows; 0 in a call whose events are not kept. */
static inline void coll_event_time(int64_t *time) {
    *time = coll_keeps_events() ? clocks_of_system() : 0;
}

/*
 * An event of an earlier time, which a rank with the same clock has read: a host has one clock. The
 * time 0 is now, as a time to come is. Events stay in the order of their times.
 */
void coll_event_at(enum coll_event_type type, int a, int b, int64_t time);

/* Before and after a call; the former returns the memory that it is kept in, or NULL. */
struct coll_events *coll_events_begin(const struct coll_routine *routine,
                                      const struct coll_call *call, const struct coll_comm *cc);
void coll_events_end(struct coll_events *events);

/* At the beginning and at the end of MPI. */
void coll_events_open(void);
void coll_events_write(void);

/* What runs a routine, or a part of a composition, runs it so: call.c and parts.c do not. */
int coll_traced_run(const struct coll_routine *routine, const struct coll_call *call,
                    struct coll_comm *cc, const struct coll_parameters *parameters);
int coll_traced_part(const struct coll_parameters *parameters, int which, struct coll_call part,
                     const struct coll_comm *cc);
#ifndef COLL_UNTRACED
#define coll_run coll_traced_run
#define coll_run_part coll_traced_part
#endif

#endif
