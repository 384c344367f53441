/*
 * Calls that measure and adapt (STAR: Faraj 2006, §4.3). Part of the library where it was made with
 * `stagegen tune --adaptive`; on where LIBCOLL_ADAPTIVE names a policy.
 *
 * A situation is a call site, a collective, a message size and a communicator. The calls of a
 * situation go in stages: so many calls of one candidate. After a stage the ranks meet: one reduce
 * tells rank 0 of the communicator what the calls took, one broadcast tells all ranks the next
 * stage. Rank 0 alone has the policy, so no rank can decide otherwise than the others.
 */
#ifndef ADAPTIVE_H
#define ADAPTIVE_H

#include <stdint.h>

#include "dispatch.h"
#include "policy.h"

/* The most that settings allow. What a communicator keeps is bounded by them. */
enum {
    COLL_SITES_MOST = 16,
    COLL_SIZES_MOST = 64,
    COLL_ITERATIONS_MOST = 64,
    COLL_DELTA_MOST = 64,
    COLL_PATTERN_MOST = 16,              /* calls of a period of call sites */
    COLL_WINDOW = 4 * COLL_PATTERN_MOST, /* calls in which a period is looked for */
    COLL_WINDOWS = 4,                    /* periods that ranks leave, until sites are off */
    COLL_MEETINGS = 7,                   /* whose median time counts */
    COLL_STAGE_FACTS = 2, /* what ranks tell of a stage, besides the times of its calls */
};

/* options.c: LIBCOLL_ADAPTIVE. */
struct coll_options {
    const struct coll_policy *policy;
    int sites; /* N: of a size, the call sites that adapt; 0: sites do not count */
    int sizes; /* X: of a collective on a communicator, the sizes that adapt */
    int iterations, delta, delta_bound;
    double epsilon;
    uint64_t seed;
    const char *learn; /* LIBCOLL_LEARN, the file to write, or NULL; ranks may differ in it */
};

/* options.c: the most calls of a stage: a monitoring period, or a few trials. */
int coll_stage_most(void);

/* policies.c: the policy of a name that has so many letters, or NULL; all names, for a message. */
const struct coll_policy *coll_find_policy(const char *name, size_t length);
const char *coll_policy_names(void);

/* What runs: a candidate, or what the table of rules chose. */
struct coll_option {
    const struct coll_routine *routine;
    const struct coll_parameters *parameters;
};

/* candidates.c: what the front matter says of a routine, by its index in coll_routines. */
struct coll_mark {
    int is_marked;
    int group; /* the source's (Faraj 2006, §4.3.1.3); 0: none */
    int is_representative;
    int without_hosts;  /* it stands for another one where hosts are not known */
    MPI_Aint max_bytes; /* of the messages that it competes for */
};
extern const struct coll_mark coll_marks[];

/* candidates.c: what `stagegen tune` measured for a table of rules. */
struct coll_known {
    const struct coll_routine *routine;
    MPI_Aint bytes;
    double seconds; /* of a call: the median */
    struct coll_parameters parameters;
};

/* candidates.c: of a routine, that of the size nearest to `bytes`; NULL where none was measured. */
const struct coll_known *coll_find_known(int table, const struct coll_routine *routine,
                                         MPI_Aint bytes);

/*
 * candidates.c: what follows for a call of `bytes`, in seconds: from the line through the sizes
 * around it; beyond the largest size, in proportion to the bytes. 0 where none was measured.
 */
double coll_known_seconds(int table, const struct coll_routine *routine, MPI_Aint bytes);

/*
 * choices.c: the candidates of a call, alike on all ranks, and what is known of each; returns how
 * many. `chosen` is the table's choice. Both arrays are NULL, or have room for so many.
 */
int coll_list_options(const struct coll_call *call, struct coll_comm *cc,
                      const struct coll_option *chosen, struct coll_option *options,
                      struct coll_candidate *candidates);

struct coll_record;

/* What the latest meetings took, in turn. */
struct coll_prices {
    double seconds[COLL_MEETINGS];
    int count; /* of all that were known */
};

struct coll_situation {
    int is_open;
    int is_closed; /* the table of rules serves it for good */
    int count;     /* candidates */
    struct coll_option *options;
    struct coll_stage stage;
    double met_s;    /* what the latest meeting took on this rank, waiting included; 0: none yet */
    int met_between; /* it went on between calls */
    int done;        /* calls of the stage so far; during a meeting, calls since it began */
    int due;         /* calls after which a stage or a part of a meeting ends */
    uint64_t *ticks; /* of each of them, on this rank; there is room for the longest stage */

    /* on rank 0 of the communicator */
    struct coll_problem problem;
    struct coll_candidate *candidates;
    void *state; /* the policy's */
    struct coll_record *record;
    struct coll_prices before_calls, between_calls; /* of meetings */
};

/* Which call sites take turns. From `period` on it is alike on all ranks. */
struct coll_pattern {
    int is_off;  /* for good */
    int windows; /* whose periods a rank has left */
    int known;   /* sites of this rank, in the order of their first calls */
    const void *site[COLL_SITES_MOST];
    unsigned long calls;     /* since the window began */
    int seen;                /* calls in the window */
    int window[COLL_WINDOW]; /* their sites, by number; -1: beyond N */
    int strange;             /* calls of this rank from another site than was expected */

    int period;                   /* calls after which the sites come again; 0: not agreed */
    int at;                       /* the next call's place in the period */
    int place[COLL_PATTERN_MOST]; /* -> the number of the site expected there, or -1 */
};

/* The calls of a collective that have one size, on a communicator. */
struct coll_family {
    enum coll_collective collective;
    MPI_Aint bytes;
    struct coll_pattern pattern;
    struct coll_situation whole;     /* whatever the site */
    struct coll_situation of_site[]; /* [number of the site], while a period is agreed */
};

/* A number of each rank, over all ranks. */
struct coll_triple {
    double sum, most, least;
};

/* What rank 0 tells when a situation begins, and at the end of a stage. */
struct coll_told {
    int candidate, calls, is_monitoring; /* no calls: the table of rules serves from now on */
    int gives_up; /* a rank has no memory: nothing adapts on this communicator any more */
    int verdict;
    int period, place[COLL_PATTERN_MOST];
};

/* A meeting that goes on while calls run. */
struct coll_meeting {
    struct coll_family *family;
    struct coll_situation *situation; /* NULL: there is no such meeting */
    int calls;                        /* of the stage that ended */
    struct coll_pattern pattern;      /* as it was then */
    int is_telling;                   /* the broadcast has begun */
    int is_hurried;                   /* another meeting waits for it */
    double seconds;                   /* of its parts so far, on this rank */
    MPI_Request request;              /* the reduce or the broadcast */
    struct coll_told told;
};

/* What hangs on a communicator. All memory is there before the first stage. */
struct coll_adaptive {
    struct coll_triple *own; /* what this rank tells at a meeting */
    struct coll_triple *all; /* on rank 0 of the communicator, what all tell, */
    double *times;           /* and the times of the calls in it */
    struct coll_meeting meeting;
    struct coll_adaptive **at_end; /* this, for the end of the communicator */
    struct coll_adaptive *next;    /* of another communicator */
    unsigned number;               /* of the communicator, on this rank */
    int known[COLL_COLLECTIVES];
    struct coll_family *latest[COLL_COLLECTIVES];
    struct coll_family *families[COLL_COLLECTIVES][COLL_SIZES_MOST];
};

/* sites.c: where a Fortran program calls, while it does; else NULL. */
extern _Thread_local const void *coll_fortran_site;

/* sites.c; the situation is NULL for a call of a site beyond N, where sites are apart */
enum coll_verdict { COLL_KEEP, COLL_SPLIT, COLL_FOLD };
struct coll_situation *coll_site_of(struct coll_family *family, const void *site, int most);
double coll_site_hash(const struct coll_pattern *pattern);
enum coll_verdict coll_judge_sites(const struct coll_pattern *pattern, int alike, double strange);
int coll_places(const struct coll_pattern *pattern, int *place);
void coll_split(struct coll_family *family, int period, const int *place);
void coll_unite(struct coll_family *family);

/* What the ranks told rank 0. */
struct coll_report {
    struct coll_heard heard;
    int single; /* so many of its calls, the last ones, were told one by one, the others as means */
    double meeting_s; /* the meeting before this one: the mean time of the ranks if it went on
                         between calls, else the least time of all ranks but rank 0 */
    double strange;   /* calls from another site than was expected, of all ranks */
    int alike;        /* whether all ranks saw their sites in the same order */
};

/*
 * meeting.c: the reduce and the broadcast. Before a situation begins, the reduce tells rank 0
 * whether all ranks have memory for it, and the operation that meetings need.
 */
int coll_can_meet(void);
int coll_told_most(void); /* what a rank tells in a meeting, in numbers over all ranks */
int coll_ask_all(const struct coll_comm *cc, int own, int *all);
int coll_report(const struct coll_comm *cc, const struct coll_situation *situation,
                const struct coll_pattern *pattern, struct coll_report *report);
int coll_tell(const struct coll_comm *cc, struct coll_told *told);

/* meeting.c: the same without waiting; on rank 0, the report is read when the reduce has ended. */
int coll_begin_report(const struct coll_comm *cc, const struct coll_situation *situation,
                      const struct coll_pattern *pattern, MPI_Request *request);
void coll_read_report(const struct coll_comm *cc, const struct coll_situation *situation, int calls,
                      struct coll_report *report);
int coll_begin_to_tell(const struct coll_comm *cc, struct coll_told *told, MPI_Request *request);

/*
 * situations.c: whether a call adapts, alike on all ranks, and its situation: NULL if this rank has
 * no memory for it.
 */
int coll_adapts(const struct coll_call *call, struct coll_comm *cc, struct coll_family **family,
                struct coll_situation **situation);

/* situations.c */
void coll_close(struct coll_situation *situation);

/*
 * stages.c: open a situation, on all ranks together; it may be NULL, as above. It is NULL
 * afterwards where the table of rules serves.
 */
int coll_open(const struct coll_call *call, struct coll_comm *cc, struct coll_family *family,
              struct coll_situation **situation, const struct coll_option *chosen);

/* stages.c: a call of a stage's candidate took so long; at the end of the stage, ranks meet. */
int coll_go_on(struct coll_comm *cc, struct coll_family *family, struct coll_situation *situation);

/*
 * stages.c: where the communicator ends, or adapts no more: wait for what a meeting has begun, and
 * drop it. situations.c: the same of all communicators, where MPI ends.
 */
int coll_leave_meeting(struct coll_adaptive *adaptive);
void coll_leave_meetings(void);
static inline int coll_took(struct coll_comm *cc, struct coll_family *family,
                            struct coll_situation *situation, uint64_t ticks) {
    situation->ticks[situation->done++] = ticks;
    if (situation->done < situation->due)
        return MPI_SUCCESS;
    return coll_go_on(cc, family, situation);
}

/*
 * learned.c: what LIBCOLL_LEARN writes, and what guard says at the end. On rank 0 of a
 * communicator; a record is NULL where there is no room for it.
 */
struct coll_record *coll_learn(const struct coll_call *call, const struct coll_comm *cc,
                               const struct coll_family *family,
                               const struct coll_situation *situation);
void coll_learn_stage(struct coll_record *record, const struct coll_stage *stage,
                      const struct coll_heard *heard, const struct coll_stage *next,
                      const char *why);
void coll_learn_passed(struct coll_record *record, int calls);       /* in the latest meeting */
void coll_learn_meeting(struct coll_record *record, double seconds); /* after the latest one */
void coll_learn_pause(struct coll_record *record, int is_paused);    /* while sites are apart */
void coll_learn_write(void);

#endif
