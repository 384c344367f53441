/* What the routines, the dispatcher and the drivers share. */
#ifndef COLL_H
#define COLL_H

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "catalogue.h"

/* A communicator as the routines see it. Made once, cached as an attribute, freed with it. */
enum coll_kind {
    COLL_KIND_NATIVE,  /* always native: see enum coll_why */
    COLL_KIND_OTHER,   /* some rank's host is not known: no topology */
    COLL_KIND_HOSTS,   /* all ranks are on hosts of the cluster, in any number and order */
    COLL_KIND_CLUSTER, /* the same, and exactly the ranks of the cluster or of one of its groups */
};

/* Why a communicator is native, or of COLL_KIND_OTHER. */
enum coll_why {
    COLL_WHY_NOTHING,
    COLL_WHY_INTER,    /* an intercommunicator */
    COLL_WHY_SINGLE,   /* of a single rank */
    COLL_WHY_THREADS,  /* its ranks are threads (MPIX_Threadcomm_init) */
    COLL_WHY_UNLIKE,   /* odd_rank has another library, or other settings, than rank 0 */
    COLL_WHY_STRANGER, /* the host of odd_rank, odd_name, is not known */
    COLL_WHY_LIMIT,    /* some rank has as many private duplicates as it may have */
    COLL_WHY_CONTEXTS, /* the MPI library could not make one more communicator */
};

/* Names of hosts are kept up to here, with the 0 at their end. */
enum { COLL_NAME = 28 };

/* The tokens of a rank in the combining tree of a barrier, for so many children. */
struct coll_combining {
    int arity;
    int parent;   /* MPI_PROC_NULL for the root */
    int children; /* how many */
    struct coll_combining *next;
    int child[]; /* the nearest first */
};

/* Levels above hosts at which ranks are near each other. */
enum coll_level { COLL_LEVEL_SWITCHES, COLL_LEVEL_SITES, COLL_LEVELS };

/* The ranks part by part, at one level. The parts, and the ranks of each, go by their places. */
struct coll_parted {
    int parts;
    int part;   /* of this rank */
    int *first; /* [part] -> where its ranks begin; [parts] -> size */
    int *ranks; /* part by part */
};

/*
 * What a routine keeps of a communicator from call to call, made by coll_comm_state: its own data
 * comes after it. Calls on a communicator come one after the other, so nothing locks it.
 */
struct coll_state {
    _Alignas(16) const void *owner; /* an address of the routine; NULL: see coll_comm_at_end */
    int (*end)(void *data);         /* what all ranks do with it together at the end; or NULL */
    struct coll_state *next;
};

/* The list of them; and whether some rank had no memory for what all were to keep. */
struct coll_states {
    struct coll_state *first;
    int refused; /* alike on all ranks */

    /* Another private communicator, on which ranks that release by multicast may wait. */
    int has_multicast;
    MPI_Comm multicast;
};

struct coll_plans; /* persistent.h */

/* From `rank_of` on each kind has what the kinds before it have; other pointers are NULL. */
struct coll_comm {
    MPI_Comm comm; /* private duplicate: our tags never meet the application's; or none yet */
    struct coll_plans *plans; /* another one, of persistent collectives alone; or none yet */
    int no_plans;             /* there can be none, on all ranks */
    int short_calls;          /* that were native, as there is no private duplicate yet */
    enum coll_kind kind;
    int rank;
    int size;
    int hosts;          /* how many hosts have ranks here, whether they are known or not */
    int ranks_per_host; /* the mean, rounded up */

    enum coll_why why;
    int odd_rank;
    char odd_name[COLL_NAME];
    int told; /* what LIBCOLL_TRACE has said of it: see trace.c */

    struct coll_combining **combining; /* a list of those that were needed so far */
    struct coll_states *states;        /* what routines keep */

    /* COLL_KIND_HOSTS: the ranks by their hosts, and the hosts in depth-first order. */
    int *order;        /* [place] -> rank; the ranks of a host are next to each other, ascending */
    int *place_of;     /* [rank] -> place */
    int *first_place;  /* [h] -> first place of the h-th of these hosts; [hosts] -> size */
    int *host_place;   /* [h] -> its place among all hosts of the cluster: see cluster.c */
    int host;          /* which of them this rank is on */
    int *depth_before; /* [place] -> how deep in the tree of switches it meets the one before */

    struct coll_parted levels[COLL_LEVELS];

    /* COLL_KIND_CLUSTER: the ranks of the schedules. */
    int group;        /* 0 the whole cluster, k its k-th group in the topology file; else -1 */
    int *rank_of;     /* [position] -> rank here */
    int *position_of; /* [rank] -> position: the numbering of the cluster, or of that group */

    int *memory; /* of all these */

    /* The tables of rules.c that are for these ranks, as far as calls have asked for them. */
    const struct coll_table *tables[COLL_COLLECTIVES];
#ifdef COLL_ADAPTIVE

    struct coll_adaptive *adaptive; /* what was learned of its calls, or NULL */
    int no_adaptive;                /* a rank had no memory for it: on all ranks */
#endif
};

/*
 * Blocks of different lengths, one per rank, as MPI_Alltoallv and its like are given them: by int,
 * or by the large numbers of MPI_Alltoallv_c. Displacements count elements; MPI_Reduce_scatter has
 * none.
 */
struct coll_blocks {
    const int *counts, *displacements;
    const MPI_Count *large_counts;
    const MPI_Aint *large_displacements;
};

/*
 * One call of a collective. The first group is what the application passed, of which each
 * collective has its part; count and type of a reduction or a broadcast are recv_count and
 * recv_type. The second is found by the collective's `measure`, the third is the view that its
 * `prepare` makes for the routines: catalogue.h says what is in it.
 *
 * A composition of a reduction has no view: it gets what the application passed, and so do its
 * parts. Only bytes and ordered are filled in.
 *
 * bytes counts packed data (MPI_Type_size), is equal on all ranks, and at most INT_MAX. For a
 * routine that asks for COLL_DENSE all data is of type MPI_PACKED: a block is so many bytes of it.
 */
struct coll_call {
    enum coll_collective collective;
    MPI_Comm comm;
    const void *sendbuf;
    void *recvbuf;
    int send_count;
    MPI_Datatype send_type;
    int recv_count;
    MPI_Datatype recv_type;
    struct coll_blocks send_blocks, recv_blocks;
    MPI_Op op;
    int root;

    MPI_Aint bytes;
    int ordered; /* the operation does not commute: operands stay in the order of the ranks */

    /* A type that keeps elements apart takes the place of the application's, element_type. */
    int spaced;
    MPI_Datatype element_type;

    const char *send;
    MPI_Aint send_stride; /* bytes from one block to the next, or of an element */
    char *recv;
    MPI_Aint recv_stride;
    const MPI_Aint *starts; /* in elements */
#ifdef COLL_ADAPTIVE

    const void *site; /* where the application calls */
#endif
};

/*
 * A routine. The comment above each says what it finds in its call. Returns MPI_SUCCESS or an MPI
 * error code.
 */
typedef int coll_function(const struct coll_call *call, const struct coll_comm *cc,
                          const struct coll_parameters *parameters);

/* What a routine asks of the communicator and of coll_run; the same on all ranks. */
enum coll_constraint {
    COLL_ANY = 0,
    COLL_POWER_OF_TWO = 1 << 0,
    COLL_NEEDS_CLUSTER = 1 << 1,  /* has tables of the cluster, or of one of its groups */
    COLL_UNPREPARED = 1 << 2,     /* takes the application's arguments: the native routine */
    COLL_DENSE = 1 << 3,          /* of the data: blocks are plain bytes, see struct coll_call */
    COLL_NEEDS_ORDER = 1 << 4,    /* reads order and place_of: COLL_KIND_HOSTS or more */
    COLL_NEEDS_LEADERS = 1 << 5,  /* the same, with several hosts; one has several ranks */
    COLL_OF_PARTS = 1 << 6,       /* a composition: it makes calls of other collectives */
    COLL_NEEDS_SWITCHES = 1 << 7, /* as leaders, with switches for hosts */
    COLL_NEEDS_SITES = 1 << 10,   /* as leaders, with sites for hosts */
    COLL_NEEDS_PLACES =
        COLL_NEEDS_ORDER | COLL_NEEDS_LEADERS | COLL_NEEDS_SWITCHES | COLL_NEEDS_SITES,

    COLL_WATCHES_ARRIVALS = 1 << 11, /* what it does depends on the order of arrivals */

    COLL_COMMUTATIVE = 1 << 8, /* reorders the operands of a reduction */
    COLL_FIXED_ORDER = 1 << 9, /* serves LIBCOLL_DETERMINISTIC: an order that p alone decides */
};

struct coll_routine {
    const char *name; /* of the algorithm */
    enum coll_collective collective;
    int constraints; /* of enum coll_constraint */
    int group;       /* whose tables it has; 0 as well where it has none */
    MPI_Aint min_bytes, max_bytes;
    coll_function *run;
    struct coll_parameters defaults; /* where nothing was tuned */
    enum coll_steps steps;
};

/* The routine of a part of a composition. */
struct coll_part {
    const struct coll_routine *routine;
    struct coll_parameters parameters;
};

extern const char *const coll_collective_names[COLL_COLLECTIVES];
extern const struct coll_routine coll_routines[]; /* sorted by collective, name and group */
extern const int coll_routine_count;
extern const struct coll_routine *const coll_native[COLL_COLLECTIVES];

/*
 * applicable.c: the first routine of a name, or NULL; the one of the same name for a communicator's
 * group; and whether a routine can do a message size on a communicator.
 */
const struct coll_routine *coll_find_routine(enum coll_collective collective, const char *name);
const struct coll_routine *coll_routine_for(const struct coll_routine *routine,
                                            const struct coll_comm *cc);
int coll_applicable(const struct coll_routine *routine, const struct coll_comm *cc, MPI_Aint bytes);

/* cluster.c: the topology that this build was made for. */
extern const char *const coll_cluster_name;
extern const char *const coll_cluster_hash;
extern const int coll_cluster_hosts;
extern const int coll_cluster_groups; /* its groups; group 0 is the whole cluster */
extern const char *const coll_cluster_group_names[];
const char *coll_cluster_name_of(int host);
const char *coll_cluster_address_of(int host);
int coll_cluster_place_of(int host);      /* in depth-first order of all hosts */
int coll_cluster_depth_before(int place); /* where it meets the place before in the tree */
int coll_cluster_switch_of(int place);    /* of the host there */
int coll_cluster_site_of(int place);
int coll_cluster_group_size(int group); /* ranks */
int coll_cluster_host_of(int group, int position);

/* hosts.c: the host of this process. */
int coll_cluster_host(void);       /* its index, or -1 */
int coll_cluster_self(char *name); /* or a negative number from its name, which is told */
unsigned coll_hash(const char *text);

/* build.c: a hash of all files of the library */
extern const unsigned long long coll_build;

/*
 * peers.c. `coll_peers_meet` is collective: ranks that may be strangers introduce themselves. What
 * they know ends with that communicator, by `coll_peers_part`, or with MPI. `coll_peers_of` needs a
 * message only for ranks that never met in this way; then it is collective. `coll_peers_are_alike`
 * never needs one: whether all ranks that met on this communicator have a library like this one.
 */
struct coll_peers {
    int *hosts;           /* [rank]: room for them is the caller's */
    int unlike;           /* the lowest rank that has another library than rank 0, or -1 */
    int stranger;         /* the lowest rank whose host is not known, or -1 */
    char name[COLL_NAME]; /* of that host, if LIBCOLL_TRACE is set */
};

int coll_peers_meet(MPI_Comm comm);
int coll_peers_of(MPI_Comm comm, int size, struct coll_peers *peers);
void coll_peers_part(MPI_Comm comm);
int coll_peers_are_alike(MPI_Comm comm);
void coll_peers_restart(void);
int coll_begin_quiet(MPI_Comm comm, MPI_Errhandler *handler);
int coll_end_quiet(MPI_Comm comm, MPI_Errhandler *handler);

#ifdef COLL_ADAPTIVE
/* situations.c, meeting.c: what the communicator's end, and MPI's, take away. */
void coll_free_adaptive(struct coll_adaptive *adaptive);
void coll_meeting_finalize(void);
void coll_meeting_restart(void);
void coll_situations_restart(void);

#endif
#ifdef COLL_PATTERNS
/* agreement.c: likewise. */
void coll_agreement_finalize(void);
void coll_agreement_restart(void);

#endif
/* communicator.c */
int coll_comm_get(MPI_Comm comm, struct coll_comm **cc);
int coll_comm_private(MPI_Comm comm, struct coll_comm *cc);
MPI_Comm coll_comm_twin(MPI_Comm comm);
int coll_comm_plans(MPI_Comm comm, struct coll_comm *cc, int can, struct coll_plans **plans);
MPI_Comm coll_comm_plans_twin(MPI_Comm comm);
MPI_Comm coll_comm_multicast_twin(MPI_Comm comm);
void coll_plans_release(struct coll_plans *plans);
void *coll_comm_state(const struct coll_comm *cc, const void *owner, size_t bytes);
int coll_comm_agreed_state(const struct coll_comm *cc, const void *owner, size_t bytes,
                           void **data);
void *coll_comm_at_end(const struct coll_comm *cc, size_t bytes, int (*end)(void *data));
void coll_comm_end_together(MPI_Comm comm);
void coll_comm_leave_world(void);
void coll_comm_finalize(void);
void coll_comm_restart(void);

/* gpu.c: the function by which the MPI library says that it takes buffers on a GPU, or NULL. */
const char *coll_gpu_support(void);

/*
 * communicator_cache.c: what is known of communicators by their handles, until they are freed.
 * Native ones are known to all threads; of others a thread that called here has the data, or NULL.
 */
int coll_cached_native(MPI_Comm comm);
void coll_cache_native(MPI_Comm comm);
struct coll_comm *coll_cached(MPI_Comm comm);
void coll_cache(MPI_Comm comm, struct coll_comm *cc);
void coll_forget(MPI_Comm comm);
void coll_forget_all(void);
unsigned coll_forgotten(void); /* how many so far */

/* What a rank holds on one side of a call: nothing, one block, or one for (or from) each rank. */
enum coll_side { COLL_NOTHING, COLL_ONE, COLL_ALL };

/* Which buffer may be MPI_IN_PLACE: on every rank or, where there is a root, there only. */
enum coll_in_place { COLL_NEVER, COLL_SENDBUF, COLL_RECVBUF };

/* Whether a collective reduces, and which ranks get the result. */
enum coll_reduction { COLL_NO_REDUCTION, COLL_FOR_ALL, COLL_FOR_ROOT, COLL_A_PART_FOR_EACH };

/* The calls that a collective allows: what its collective.yaml says of them. */
struct coll_descriptor {
    enum coll_side send, recv;
    enum coll_in_place in_place;
    enum coll_reduction reduces;
    int rooted;
    int uneven;  /* blocks differ in length: send_blocks, recv_blocks */
    int whole;   /* a size counts the whole message, all blocks together; else one block */
    int unsized; /* calls have no size that all ranks know: one rule serves them all */
};

extern const struct coll_descriptor coll_descriptors[COLL_COLLECTIVES]; /* routines.c */

/*
 * Where there is a root, data goes from it if it has blocks for all or alone has any, else to it.
 * What is sent then counts on the root only or, in the other direction, what is received.
 */
static inline int coll_is_from_root(const struct coll_descriptor *descriptor) {
    return descriptor->rooted && descriptor->send != COLL_ONE;
}

static inline int coll_is_to_root(const struct coll_descriptor *descriptor) {
    return descriptor->rooted && descriptor->send == COLL_ONE;
}

static inline int coll_has_root(enum coll_collective collective) {
    return coll_descriptors[collective].rooted;
}

/*
 * The view of a collective, in view_<collective>.c. `measure` finds bytes and ordered from what the
 * application passed, which must be valid; `prepare` makes the view, with memory in *scratch
 * that is freed later; `finish` brings the result to the application where it is not there yet.
 * A collective with routines that ask for COLL_DENSE has `pack`, which changes the view for them
 * and has two places for memory, that of `prepare` the first; `unpack` gets the second, or NULL.
 * `copies` is how many bytes these allocate at most on any rank, found from what all ranks know.
 */
struct coll_view {
    int (*measure)(struct coll_call *call);
    int (*prepare)(struct coll_call *view, const struct coll_comm *cc, char **scratch);
    int (*finish)(const struct coll_call *view, const struct coll_comm *cc);
    int (*pack)(struct coll_call *view, const struct coll_comm *cc, char **scratch);
    int (*unpack)(const struct coll_call *call, const struct coll_comm *cc, const char *packed);
    double (*copies)(const struct coll_call *call, int size, int dense); /* NULL: nothing */
};

extern const struct coll_view *const coll_views[COLL_COLLECTIVES]; /* routines.c */

/* call.c: run a routine on a call that was measured; and what views are made with. */
int coll_run(const struct coll_routine *routine, const struct coll_call *call, struct coll_comm *cc,
             const struct coll_parameters *parameters);
int coll_run_inside(const struct coll_routine *routine, const struct coll_call *call,
                    const struct coll_comm *cc, const struct coll_parameters *parameters);
int coll_packed_bytes(MPI_Count count, MPI_Datatype type, MPI_Aint *bytes);
int coll_total_bytes(const struct coll_blocks *blocks, int size, MPI_Datatype type,
                     MPI_Aint *bytes);
int coll_measure_received(struct coll_call *call);
int coll_extent(MPI_Count count, MPI_Datatype type, MPI_Aint *bytes);
int coll_allocate(MPI_Aint bytes, char **memory);
int coll_member(MPI_Comm comm, int *rank, int *size);
int coll_nothing_to_finish(const struct coll_call *view, const struct coll_comm *cc);

/*
 * parts.c: compositions. A part is the call that a composition makes of another collective. It is
 * served by what was tuned for it, else by the MPI library, on the private communicator.
 */
enum { COLL_PARTS_MOST = 2 };
int coll_parts_can(const struct coll_routine *routine, const struct coll_parameters *parameters,
                   const struct coll_call *call, const struct coll_comm *cc);
int coll_reorders(const struct coll_routine *routine, const struct coll_parameters *parameters);
int coll_run_part(const struct coll_parameters *parameters, int which, struct coll_call part,
                  const struct coll_comm *cc);

/* formulas.c: what front matters say of a routine. */
enum coll_collective coll_part_collective(const struct coll_routine *routine, int which);
double coll_part_bytes(const struct coll_routine *routine, int which, const struct coll_call *call,
                       const struct coll_comm *cc);
double coll_routine_scratch(const struct coll_routine *routine,
                            const struct coll_parameters *parameters, const struct coll_call *call,
                            const struct coll_comm *cc);

/*
 * reduction.c. Elements somewhere: `count` of the call's type, which may have gaps and lie on
 * both sides of `data`; memory is what to free.
 */
struct coll_elements {
    char *memory;
    char *data;
};

enum { COLL_ALIGNMENT = 64 };
int coll_measure_reduction(struct coll_call *call);
int coll_span(const struct coll_call *call, MPI_Count count, MPI_Aint *low, MPI_Aint *bytes);
int coll_elements_for(const struct coll_call *call, MPI_Count count,
                      struct coll_elements *elements);
int coll_copy_elements(const struct coll_call *call, const struct coll_comm *cc, const void *from,
                       void *to, int count);
int coll_run_reduction(const struct coll_routine *routine, const struct coll_call *call,
                       const struct coll_comm *cc, const struct coll_parameters *parameters);
int coll_fold(const struct coll_call *call, const struct coll_comm *cc, char *theirs, char *mine,
              int count, int theirs_first);

/* types.c; at the end of MPI, and once it has ended. */
int coll_is_predefined(MPI_Datatype type);
int coll_is_dense(MPI_Datatype type, int *dense);
void coll_types_finalize(void);
void coll_types_restart(void);

/* data.c */
int coll_spaced_type(MPI_Datatype type, MPI_Datatype *spaced, int *differs);
int coll_block_type(int count, MPI_Datatype type, MPI_Aint stride, MPI_Datatype *block);
int coll_copy(const void *from, MPI_Count from_count, MPI_Datatype from_type, void *to,
              MPI_Count to_count, MPI_Datatype to_type, const struct coll_comm *cc);

/* data.c: how a routine ends what it has posted, and what is left of it after an error. */
int coll_complete(MPI_Request *requests, int receives, int sends, int error);
void coll_abandon(MPI_Request *requests, int receives, int sends);

/*
 * Built with -DCOLL_STAMPS, schedules in phases and rounds write when what happens: stamps.c.
 * `what` is one of these letters: a routine begins and ends, a send starts, a message has arrived.
 */
enum coll_stamp {
    COLL_STAMP_BEGUN = 'B',
    COLL_STAMP_ENDED = 'E',
    COLL_STAMP_STARTED = 'S',
    COLL_STAMP_ARRIVED = 'A'
};
#if defined(COLL_STAMPS) || defined(COLL_TRACED)
void coll_stamp(enum coll_stamp what, int phase, int position);
#else
static inline void coll_stamp(enum coll_stamp what, int phase, int position) {
    (void)what;
    (void)phase;
    (void)position;
}
#endif

/*
 * The same with the rank that a position is: where positions are not those of the communicator, as
 * in a schedule of hosts. With TRACE=1, events name ranks.
 */
#ifdef COLL_TRACED
void coll_stamp_of(enum coll_stamp what, int phase, int position, int rank);
#else
static inline void coll_stamp_of(enum coll_stamp what, int phase, int position, int rank) {
    (void)rank;
    coll_stamp(what, phase, position);
}
#endif

/*
 * Built with TRACE=1, a library keeps what happens within its calls: events/events.h. A routine has
 * not to say that there is a message. What is no message, as in shared memory, it tells by
 * coll_event(type, a, b), b up to 2^23. What another rank of the host did before, it tells by
 * coll_event_at, with what coll_event_time stored on that rank.
 */
enum coll_event_type {
    COLL_EVENT_SENT = 1, /* the send of a message to rank a, of tag b, begins */
    COLL_EVENT_RECEIVED, /* the receive of a message of rank a, of tag b, has ended */
    COLL_EVENT_STARTED,  /* the send to rank a in phase b of a schedule begins */
    COLL_EVENT_ARRIVED,  /* what rank a sent in phase b is there */
    COLL_EVENT_PART,     /* part b of a composition begins, a call of collective a; or ends: -1 */

    /* Inner node b of a tree. A contributor is a rank, or a node: -1 less its number. */
    COLL_EVENT_NODE_IN,   /* the data of contributor a is there */
    COLL_EVENT_NODE_UP,   /* what all contributors had goes to the node above; a: below */
    COLL_EVENT_NODE_DOWN, /* the result is there, from the node above; a: below */
    COLL_EVENT_NODE_OUT   /* contributor a can have the result */
    /* Of UP and DOWN, a is 1 if the node above is the call's root, outside of the tree; else 0. */
};
#ifdef COLL_TRACED
#include "events.h"
#else
static inline void coll_event(enum coll_event_type type, int a, int b) {
    (void)type;
    (void)a;
    (void)b;
}
static inline void coll_event_at(enum coll_event_type type, int a, int b, int64_t time) {
    (void)type;
    (void)a;
    (void)b;
    (void)time;
}
static inline void coll_event_time(int64_t *time) {
    (void)time;
}
static inline int coll_keeps_events(void) {
    return 0;
}
static inline void coll_events_open(void) {
}
static inline void coll_events_write(void) {
}
#endif

/* The rank at a place in the order of the hosts or, where that is not known, in that of ranks. */
static inline int coll_rank_at(const struct coll_comm *cc, int place) {
    return cc->order != NULL ? cc->order[place] : place;
}

/* The leader of a host: the first of its ranks, which are next to each other in that order. */
static inline int coll_leader_of(const struct coll_comm *cc, int host) {
    return cc->order[cc->first_place[host]];
}

/* Tags on the private communicator. Messages of one kind between two ranks match in order. */
enum { COLL_TAG_DATA = 1, COLL_TAG_COPY = 2, COLL_TAG_TOKEN = 3, COLL_TAG_DUMMY = 4 };

/* Return an MPI error code to the caller at once. */
#define COLL_TRY(expression)                                                                       \
    do {                                                                                           \
        int coll_error_ = (expression);                                                            \
        if (coll_error_ != MPI_SUCCESS)                                                            \
            return coll_error_;                                                                    \
    } while (0)

static inline int coll_is_uneven(const struct coll_blocks *blocks) {
    return blocks->counts != NULL || blocks->large_counts != NULL;
}

static inline MPI_Count coll_count_of(const struct coll_blocks *blocks, int rank) {
    return blocks->counts != NULL ? blocks->counts[rank] : blocks->large_counts[rank];
}

/* In blocks from the start of the buffer, or in elements where blocks differ. */
static inline MPI_Aint coll_displacement_of(const struct coll_blocks *blocks, int rank) {
    if (blocks->displacements != NULL)
        return blocks->displacements[rank];
    return blocks->large_displacements != NULL ? blocks->large_displacements[rank] : rank;
}

static inline const char *coll_send_block(const struct coll_call *call, int rank) {
    return call->send + coll_displacement_of(&call->send_blocks, rank) * call->send_stride;
}

static inline char *coll_recv_block(const struct coll_call *call, int rank) {
    return call->recv + coll_displacement_of(&call->recv_blocks, rank) * call->recv_stride;
}

/* Elements of the block for, or from, a rank. */
static inline MPI_Count coll_send_count(const struct coll_call *call, int rank) {
    return coll_is_uneven(&call->send_blocks) ? coll_count_of(&call->send_blocks, rank)
                                              : call->send_count;
}

static inline MPI_Count coll_recv_count(const struct coll_call *call, int rank) {
    return coll_is_uneven(&call->recv_blocks) ? coll_count_of(&call->recv_blocks, rank)
                                              : call->recv_count;
}

/* The point-to-point functions that take any count that a call can have; see many.c. */
#if MPI_VERSION < 4 && !defined COLL_COUNT_MOST
#define COLL_COUNT_MOST INT_MAX
#endif
#ifndef COLL_COUNT_MOST
#define COLL_ISEND PMPI_Isend_c
#define COLL_ISSEND PMPI_Issend_c
#define COLL_IRECV PMPI_Irecv_c
#define COLL_SENDRECV PMPI_Sendrecv_c
#else
#define COLL_ISEND coll_isend_many
#define COLL_ISSEND coll_issend_many
#define COLL_IRECV coll_irecv_many
#define COLL_SENDRECV coll_sendrecv_many
int coll_many_type(MPI_Count count, MPI_Datatype type, MPI_Datatype *many);
int coll_isend_many(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                    MPI_Comm comm, MPI_Request *request);
int coll_issend_many(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Request *request);
int coll_irecv_many(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                    MPI_Comm comm, MPI_Request *request);
int coll_sendrecv_many(const void *out, MPI_Count out_count, MPI_Datatype out_type, int to,
                       int out_tag, void *in, MPI_Count in_count, MPI_Datatype in_type, int from,
                       int in_tag, MPI_Comm comm, MPI_Status *status);
#endif

/* Whether so many elements have no data: there are none, or their type has none. */
static inline int coll_is_empty(MPI_Count count, MPI_Datatype type) {
    MPI_Count size;
    return count == 0 || (PMPI_Type_size_x(type, &size) == MPI_SUCCESS && size == 0);
}

/*
 * The other end of a message: MPI_PROC_NULL if the message has no data. Both ends leave it out, as
 * the signatures of what is sent and received match. Messages that only tell that a rank is ready
 * for such a block are left out with it.
 */
static inline int coll_peer(int rank, MPI_Count count, MPI_Datatype type) {
    return coll_is_empty(count, type) ? MPI_PROC_NULL : rank;
}

/* The receiver of the block for rank `to`: that rank or MPI_PROC_NULL. */
static inline int coll_receiver(const struct coll_call *call, int to) {
    return coll_peer(to, coll_send_count(call, to), call->send_type);
}

/* The sender of the block of rank `from`: that rank or MPI_PROC_NULL. */
static inline int coll_sender(const struct coll_call *call, int from) {
    return coll_peer(from, coll_recv_count(call, from), call->recv_type);
}

/* Start sending the block for rank `to`. */
static inline int coll_isend(const struct coll_call *call, const struct coll_comm *cc, int to,
                             MPI_Request *request) {
    *request = MPI_REQUEST_NULL;
    if (coll_receiver(call, to) == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return COLL_ISEND(coll_send_block(call, to), coll_send_count(call, to), call->send_type, to,
                      COLL_TAG_DATA, cc->comm, request);
}

/* The same; complete only when the receiver has begun to take the block. */
static inline int coll_issend(const struct coll_call *call, const struct coll_comm *cc, int to,
                              MPI_Request *request) {
    return COLL_ISSEND(coll_send_block(call, to), coll_send_count(call, to), call->send_type, to,
                       COLL_TAG_DATA, cc->comm, request);
}

/* Start receiving the block of rank `from` into its place. */
static inline int coll_irecv(const struct coll_call *call, const struct coll_comm *cc, int from,
                             MPI_Request *request) {
    *request = MPI_REQUEST_NULL;
    if (coll_sender(call, from) == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return COLL_IRECV(coll_recv_block(call, from), coll_recv_count(call, from), call->recv_type,
                      from, COLL_TAG_DATA, cc->comm, request);
}

/* Send the block for rank `to` and receive the block of rank `from`. */
static inline int coll_sendrecv(const struct coll_call *call, const struct coll_comm *cc, int to,
                                int from) {
    const int receiver = coll_receiver(call, to), sender = coll_sender(call, from);
    if (receiver == MPI_PROC_NULL && sender == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return COLL_SENDRECV(coll_send_block(call, to), coll_send_count(call, to), call->send_type,
                         receiver, COLL_TAG_DATA, coll_recv_block(call, from),
                         coll_recv_count(call, from), call->recv_type, sender, COLL_TAG_DATA,
                         cc->comm, MPI_STATUS_IGNORE);
}

/* The element of that number, of `elements` of a reduction. */
static inline char *coll_element(const struct coll_call *call, char *elements, MPI_Aint number) {
    return elements + number * call->recv_stride;
}

/* Light barrier: tell `to` that we are ready, wait until `from` is. Either may be MPI_PROC_NULL. */
static inline int coll_exchange_tokens(const struct coll_comm *cc, int to, int from) {
    if (to == MPI_PROC_NULL && from == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return PMPI_Sendrecv(NULL, 0, MPI_BYTE, to, COLL_TAG_TOKEN, NULL, 0, MPI_BYTE, from,
                         COLL_TAG_TOKEN, cc->comm, MPI_STATUS_IGNORE);
}

#endif
