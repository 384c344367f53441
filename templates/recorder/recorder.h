/*
 * The recorder: which collectives a program calls, where, and when each process enters and leaves
 * them. `stagegen record` preloads it; docs/recording.md says what is kept.
 *
 * All that is kept of a process is in one piece of memory, which has the form of its part of the
 * recording: a header, then tables. A keeper, a process of its own, shares this memory and writes
 * it if the process ends without MPI_Finalize, however it ends.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "clocks.h"

#define RECORDER_EXPORT __attribute__((visibility("default")))

enum {
    RECORDER_VERSION = 1,
    RECORDER_ENDIAN = 0x01020304,
    RECORDER_NAME = 32, /* letters of a function's or an operation's name */
    RECORDER_HOST = CLOCKS_NAME,
    RECORDER_MODULE = 120 /* of the name of a program or library */
};

/* Times are nanoseconds of the process's clock (CLOCK_MONOTONIC); 0 stands for none. */
struct recorder_event {
    int64_t arrival, exit;
    int64_t sent, received; /* elements: of a block, or of all blocks if they differ in length */
    int64_t sent_bytes, received_bytes;
    int64_t send_extent, recv_extent; /* of the datatypes, in bytes */
    uint32_t communicator, sequence, site;
    int32_t root;                      /* as the call says it; -1 if there is none */
    uint32_t send_counts, recv_counts; /* where the blocks' counts begin in their table; 0: none */
    uint16_t function, operation;      /* places in the tables of names; operation 0: none */
    uint32_t flags;                    /* enum recorder_event_flags */
};

enum recorder_event_flags {
    RECORDER_SENDS = 1,    /* the arguments of the sending side count on this rank */
    RECORDER_RECEIVES = 2, /* those of the receiving side */
    RECORDER_IN_PLACE = 4
};

struct recorder_site {
    uint64_t offset; /* of the call in the module as it is loaded */
    char module[RECORDER_MODULE];
};

/* A communicator as one of its ranks sees it; named alike on all of them. */
struct recorder_communicator {
    uint64_t hash;          /* of its members */
    uint64_t first;         /* its members' place in their table */
    uint32_t ordinal;       /* how many communicators of the same members were made before */
    int32_t rank, size;     /* of this process in its group */
    int32_t remote;         /* size of the other group; 0 unless it is an intercommunicator */
    int32_t is_first;       /* of the two groups: its members come first in the table */
    _Atomic uint32_t calls; /* which were made on it */
};

enum recorder_sections {
    RECORDER_FUNCTIONS,
    RECORDER_OPERATIONS,
    RECORDER_SITES,
    RECORDER_COMMUNICATORS,
    RECORDER_MEMBERS,
    RECORDER_SAMPLES,
    RECORDER_COUNTS,
    RECORDER_EVENTS,
    RECORDER_SECTIONS
};

struct recorder_section {
    uint64_t place; /* of the first entry, in bytes from the header; in memory only */
    uint64_t room;  /* entries that it can have */
    uint64_t size;  /* bytes of an entry */
    _Atomic uint64_t
        used; /* entries that were asked for; more than the room if some were dropped */
};

struct recorder_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t bytes; /* of the header */
    uint64_t world; /* the same number on all ranks of a MPI_COMM_WORLD, another in others */
    int32_t rank, ranks;
    int32_t spawned, finished;  /* whether other processes started it; whether MPI_Finalize came */
    int64_t begun, ended;       /* after MPI_Init, in MPI_Finalize */
    _Atomic uint64_t unnamed;   /* calls that were dropped for lack of room for a communicator */
    _Atomic uint64_t uncounted; /* calls without their blocks' counts, for lack of room */
    char host[RECORDER_HOST], clock[RECORDER_HOST];
    struct recorder_section sections[RECORDER_SECTIONS];
};

/* What a function is, by which its arguments are read. */
enum recorder_function_flags {
    RECORDER_ROOTED = 1,
    RECORDER_SENDS_AT_ROOT = 2, /* the sending side counts at the root only */
    RECORDER_RECEIVES_AT_ROOT = 4,
    RECORDER_OF_RECEIVER = 8, /* MPI_IN_PLACE replaces the receive buffer */
    RECORDER_OF_NEIGHBOURS = 16,
    RECORDER_OF_OWN_GROUP = 32 /* blocks are of the ranks of its own group, not of the other one */
};

struct recorder_function {
    const char *name;
    unsigned flags;
};

extern const struct recorder_function recorder_functions[];
extern const unsigned recorder_function_count;

/* One side of a call: a count for all blocks, or counts. */
struct recorder_side {
    int present;
    MPI_Count count;
    const int *counts;
    const MPI_Count *large_counts;
    MPI_Datatype type;
    const MPI_Datatype *types;
};

struct recorder_call {
    unsigned function;
    int root, in_place;
    MPI_Comm comm;
    MPI_Op op;
    struct recorder_side send, recv;
};

/* store.c */
extern struct recorder_header *recorder_store; /* NULL unless the process is recorded */
int recorder_open(void);
void *recorder_entry(enum recorder_sections section, uint64_t index);
void *recorder_take(enum recorder_sections section, uint64_t count, uint64_t *index);
uint64_t recorder_filled(const struct recorder_header *header, int section);
/* Both return 0, or the number of the system's error. */
int recorder_write(int file, const void *data, uint64_t bytes);
int recorder_write_part(int file, const struct recorder_header *header);
void recorder_dismiss(int written);
const char *recorder_output(void);

/* clock.c */
int64_t recorder_now(void);
void recorder_set_clock(int rank);
void recorder_compare_clocks(MPI_Comm comm);

/*
 * communicators.c. One of the communicators stands for all for which there is no room; NULL for
 * what is none any more.
 */
extern struct recorder_communicator recorder_no_room;
void recorder_begin_communicators(void);
struct recorder_communicator *recorder_find(MPI_Comm comm);
void recorder_name(MPI_Comm comm);

/* sites.c */
struct recorder_place {
    _Atomic(const void *) address;
    _Atomic uint32_t site, send_counts, recv_counts; /* the counts that were kept last */
};
struct recorder_place *recorder_place_of(const void *address);

/* operations.c */
unsigned recorder_operation(MPI_Op op);
void recorder_begin_operations(void);

/* calls.c */
extern atomic_int recorder_active;
struct recorder_event *recorder_enter(const struct recorder_call *call, const void *address);
void recorder_leave(struct recorder_event *event);
extern _Thread_local const void *recorder_fortran_site;

/* gather.c */
void recorder_gather(MPI_Comm comm);

/* The function of this name that comes next in the order of libraries. */
typedef void recorder_any(void);
recorder_any *recorder_next(const char *name, recorder_any *of_mpi);

/* Finds it once. */
#define NEXT(name)                                                                                 \
    ({                                                                                             \
        static _Atomic(recorder_any *) found;                                                      \
        recorder_any *next = atomic_load_explicit(&found, memory_order_relaxed);                   \
        if (next == NULL) {                                                                        \
            next = recorder_next(#name, (recorder_any *)P##name);                                  \
            atomic_store_explicit(&found, next, memory_order_relaxed);                             \
        }                                                                                          \
        (__typeof__(&P##name))next;                                                                \
    })

#endif
