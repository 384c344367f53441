/* Alltoall in phases (AAPC): a schedule as tables, and what the engines for schedules share. */
#ifndef AAPC_H
#define AAPC_H

#include <stdbool.h>

#include "coll.h"

/*
 * Tables are by positions, the topology's own numbers of the ranks. They hold no pointers, and all
 * that belongs to a position is in one piece. So a process has only its own part in memory: the
 * loader changes nothing, and leaves the rest on disk.
 */
enum { AAPC_NOBODY = -1 };

/* What a position does in a phase. */
struct aapc_step {
    int phase;
    int to, from; /* positions, or AAPC_NOBODY */
    int awaited;  /* tokens without which its send must not start */
    int owed;     /* tokens that it gives */
};

/* The other ends of a step's dummy messages: positions, or AAPC_NOBODY. */
struct aapc_dummies {
    int to, from;
};

/*
 * One end of a token, a message of no bytes by which a rank lets another one start a send. The
 * tokens of a step are next to each other: the awaited ones, then the owed ones.
 */
struct aapc_token {
    int peer;        /* the position at the other end */
    int other_phase; /* the phase of the message at the other end */
    int windows;     /* bit w - 1 is set if the token counts for window w */
};

/* Which rank of the earlier message gives the token that lets the later one start, and when. */
enum aapc_giver {
    AAPC_NO_TOKENS,
    AAPC_SENDER,  /* when its send is complete */
    AAPC_RECEIVER /* when the message has arrived, but for a tail */
};

/*
 * A schedule. Position r has the steps from first_step[r] up to, but not including,
 * first_step[r + 1], in the order of the phases. Their tokens follow one another from
 * first_token[r] on.
 */
struct aapc_schedule {
    int phases;
    enum aapc_giver giver;
    bool blocks;      /* the phases form blocks, of a size that is a parameter */
    bool barriers;    /* a barrier lies between two blocks; without blocks, between two phases */
    int awaited_most; /* tokens of a step */
    int owed_most;    /* tokens of a position */
    const int *first_step;
    const struct aapc_step *steps;
    const struct aapc_dummies *dummies; /* one for each step; NULL: no dummies */
    const int *first_token;
    const struct aapc_token *tokens;
};

/* The parameters of a call. */
struct aapc_choice {
    int block_size;     /* phases of a block; 1 if the schedule has no blocks */
    int window;         /* the window whose tokens count; 1 if the routine has no windows */
    int segment_size;   /* bytes; 0: a message goes in one piece */
    int receives_ahead; /* receives that are posted at a time */
    int tail;           /* bytes of a message that may be under way when its tokens leave */
};

/* A call that is under way. The rest is 0 at its beginning. */
struct aapc_run {
    const struct aapc_schedule *schedule;
    const struct aapc_choice *choice;
    MPI_Comm comm;
    const int *rank_of; /* [position] */
    MPI_Request *owed;  /* room for all tokens that this rank sends */
    int owed_count;     /* how many it has sent */
    int block;          /* how many barriers it has passed */
};

/*
 * Pass the barriers that come before a phase, if the schedule has barriers. Every rank takes part
 * in all of them, whatever its own steps are.
 */
int coll_aapc_pass_barriers(struct aapc_run *run, int phase);

/* Post the receives of the tokens that a step awaits; `token` is the step's first. */
int coll_aapc_await(const struct aapc_run *run, const struct aapc_step *step,
                    const struct aapc_token *token, MPI_Request *requests);

/* Send the tokens that a step owes: the messages at their other ends may start. */
int coll_aapc_pay(struct aapc_run *run, const struct aapc_step *step,
                  const struct aapc_token *token);

/* Whether all of some requests are complete. */
static inline bool aapc_are_complete(const MPI_Request *requests, int count) {
    while (count > 0 && requests[count - 1] == MPI_REQUEST_NULL)
        --count;
    return count == 0;
}

#endif
