/* Inside libcoll: what entry points are made of; rules, settings and trace. */
#ifndef DISPATCH_H
#define DISPATCH_H

#include <locale.h>

#include "coll.h"

/* Messages of up to `last` bytes that no earlier rule takes, or that it cannot do. */
struct coll_rule {
    MPI_Aint last;
    const struct coll_routine *routine;
    struct coll_parameters parameters;
};

/* rules.c: the rule for a message on a communicator, or NULL where nothing was tuned. */
const struct coll_rule *coll_find_rule(enum coll_collective collective, struct coll_comm *cc,
                                       MPI_Aint bytes);

#ifdef COLL_PATTERNS
/*
 * patterns.c: the rules of a pattern, or of a class, for calls of `first` to `last` bytes. Of an
 * alltoallv that is the mean block between different ranks, else all blocks together. They serve
 * the ranks of one group; see coll_comm.
 */
struct coll_pattern_entry {
    const char *name;
    enum coll_collective collective;
    int group;
    const int *bytes; /* of each block, by positions: [from * ranks + to]; of a class NULL */
    double mean;      /* bytes of a block between different ranks; of a class 0 */
    double largest_over_mean; /* the class: its largest block over the mean; of a pattern 0 */
    int first, last;
    const struct coll_rule *rule; /* the first of them; the last one is native */
};

extern const struct coll_pattern_entry coll_pattern_entries[];
extern const int coll_pattern_count;

/* agreement.c: what a rank tells others of the counts of an alltoallv, then what all told. */
struct coll_counts_told {
    uint64_t fitting; /* a bit for each entry whose pattern fits */
    uint64_t bytes;   /* of all blocks for other ranks */
    uint64_t largest; /* of these blocks */
};
int coll_agree_on_counts(const struct coll_comm *cc, struct coll_counts_told *told);

/*
 * classes.c: the entry of a group's nearest class that has a rule for so many bytes, or NULL where
 * the rules for all calls are nearer; the class of blocks; that entry for an allgatherv.
 */
const struct coll_pattern_entry *coll_find_class(enum coll_collective collective, int group,
                                                 double largest_over_mean, MPI_Aint bytes);
double coll_largest_over_mean(double largest, double all, double blocks);
int coll_find_known_class(const struct coll_call *call, const struct coll_comm *cc,
                          const struct coll_pattern_entry **entry);

/*
 * recognition.c: whether some entry is of a collective on a group; the entry of a call that all
 * ranks agree on, or NULL. For an alltoallv, that is collective now and then.
 */
int coll_has_patterns(enum coll_collective collective, int group);
int coll_recognise(const struct coll_call *call, struct coll_comm *cc,
                   const struct coll_pattern_entry **entry);

#endif
/* The shape that was measured for the rules that serve a communicator, in words for the trace. */
void coll_describe_rules(const struct coll_comm *cc, char *text, size_t room);
#ifdef COLL_ADAPTIVE

/* The number of a communicator's table of rules, or -1. */
int coll_table_number(enum coll_collective collective, struct coll_comm *cc);
#endif

/*
 * dispatch.c: the whole of an entry point. Serves the call if its arguments are valid, else leaves
 * it to the MPI library; returns what the entry point is to return.
 */
int coll_enter(struct coll_call *call);
int coll_off(MPI_Comm comm);

/*
 * The routine that would serve a call, for its persistent form, and the rule that names it and its
 * alternatives: NULL if there is none, or the environment names the routine. Collective as the
 * call. Returns 0 where all is native whatever the table says, else 1, and *error may be one. The
 * private communicator is left to the caller.
 */
int coll_choose(const struct coll_call *call, struct coll_comm **cc,
                const struct coll_routine **routine, const struct coll_rule **rule, int *error);
int coll_can(const struct coll_routine *routine, const struct coll_parameters *parameters,
             const struct coll_call *call, const struct coll_comm *cc);

/* lifetime.c: whether a communicator is being freed, or gone with the world. */
int coll_is_dying(MPI_Comm comm);
int coll_is_over(MPI_Comm comm);
void coll_watch_world(void);

/* native_cache.c: whether the latest such call was native, and so this one is; note that it was. */
int coll_cached_native_call(const struct coll_call *call);
void coll_cache_native_call(const struct coll_call *call);

/* arguments.c: whether arguments are free of mistakes; *told is an error that was told already. */
int coll_valid(const struct coll_call *call, int *told);
MPI_Count coll_at_root(MPI_Count count, int root, MPI_Comm comm);
MPI_Count coll_with_data(MPI_Count count, MPI_Datatype type);
int coll_fits(MPI_Count sendcount, MPI_Count recvcount);
int coll_call_fits(enum coll_collective collective, MPI_Count sendcount, MPI_Count recvcount);

/*
 * scratch.c: bytes that a call allocates at most on any rank, if that routine serves it, and
 * whether it may; alike on all ranks. Infinite where no rank knows: such calls are for the MPI
 * library if a limit is set.
 */
double coll_scratch(const struct coll_routine *routine, const struct coll_parameters *parameters,
                    const struct coll_call *call, const struct coll_comm *cc);
int coll_scratch_ok(const struct coll_routine *routine, const struct coll_parameters *parameters,
                    const struct coll_call *call, const struct coll_comm *cc);

/* operations.c */
int coll_operates_on(MPI_Op op, MPI_Datatype type);
int coll_is_lasting(MPI_Datatype type, MPI_Op op);

/* settings.c: the environment, read once. */
struct coll_settings {
    int disabled, tracing;
    const char *histogram;   /* the FILE of LIBCOLL_TRACE=json:FILE, or NULL */
    const char *gpu_support; /* why buffers may be on a GPU, so that all is native; or NULL */
    int scratch_is_set;
    double scratch_most; /* bytes that a call may allocate */
    int short_calls;     /* that are native on a communicator without a private duplicate */
    const struct coll_routine *forced[COLL_COLLECTIVES];
    const struct coll_routine *fixed[COLL_COLLECTIVES]; /* LIBCOLL_DETERMINISTIC */
#ifdef COLL_ADAPTIVE
    /* LIBCOLL_ADAPTIVE, or NULL */
    const struct coll_options *adaptive;
#endif
};
const struct coll_settings *coll_settings(void);

/* A number, perhaps with k, M or G after it for a power of 1024; -1 for any other text. */
double coll_bytes_of(const char *text);

/* Say that a setting is ignored, and why: once per job. */
void coll_complain(const char *variable, const char *setting, const char *why);

/*
 * settings.c: between the two, this thread reads and writes numbers as C does, whatever locale the
 * program has set.
 */
locale_t coll_numbers_begin(void);
void coll_numbers_end(locale_t before);
#ifdef COLL_ADAPTIVE

/* options.c: LIBCOLL_ADAPTIVE, read once; NULL where it is off. */
const struct coll_options *coll_options(void);
#endif

/* trace.c */
void coll_trace_count(const struct coll_routine *routine, MPI_Aint bytes);
void coll_trace_start(int collective, MPI_Aint bytes);
void coll_trace_communicator(MPI_Comm comm, struct coll_comm *cc);
void coll_trace_print(void);

/*
 * histogram.c: the entry to which a call counts, or NULL if it does not count; count a call; write
 * the file at MPI_Finalize.
 */
struct coll_histogram_entry *coll_histogram_find(const struct coll_call *call,
                                                 const struct coll_comm *cc,
                                                 const struct coll_routine *routine);
void coll_histogram_add(struct coll_histogram_entry *entry, double seconds);
void coll_histogram_write(void);
#ifdef COLL_ADAPTIVE

/* The name of a rank's file, with the rank in place of %r; whether that rank writes one. */
int coll_file_of(char *name, size_t room, const char *pattern, int rank);
#endif

#endif
