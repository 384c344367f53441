/*
 * Carries out the schedule of an alltoallv's pattern, whatever the counts of a call are.
 *
 * A rank knows the lengths of its own blocks only, and no other rank's. So nothing that it does for
 * others depends on them: each awaits and gives the tokens of its steps, always all of them. A part
 * without bytes has no message; both of its ends know. Nothing can hang: order the parts by phases.
 * A part waits for tokens of earlier ones, and for room among its sender's and its receiver's
 * messages, which earlier ones leave. So the first part that is not through can go on.
 *
 * Each rank then exchanges the blocks that the schedule does not have. All ranks come to that, as
 * none waits for it within the schedule. A block's parts are all in the schedule, or none is. So
 * between two ranks, messages of both kinds never mix.
 */
#include <stdlib.h>

#include "aapc_streams.h"
#include "block_window.h"
#include "message_order.h"

enum { IN_FLIGHT = 64 * 1024 /* of blocks after the schedule, in bytes */ };

struct of_call {
    const struct pattern *pattern;
    const struct coll_call *call;
    const struct coll_comm *cc;
};

/* Where part `number` of `parts` of so many bytes begins. */
static MPI_Aint start_of(MPI_Count bytes, int number, int parts) {
    return (MPI_Aint)(bytes / parts * number + bytes % parts * number / parts);
}

static struct aapc_message part_of(const void *owner, const struct aapc_step *step, bool sends) {
    const struct of_call *of = owner;
    const struct pattern_step *cut = of->pattern->parts + (step - of->pattern->schedule->steps);
    const int rank = of->cc->rank_of[sends ? step->to : step->from];
    const int number = sends ? cut->sent : cut->received;
    const int parts = sends ? cut->sent_of : cut->received_of;
    const MPI_Count bytes = (sends ? coll_send_count : coll_recv_count)(of->call, rank);
    const MPI_Aint start = start_of(bytes, number, parts);
    char *block = sends ? (char *)coll_send_block(of->call, rank) : coll_recv_block(of->call, rank);
    return (struct aapc_message){block + start, start_of(bytes, number + 1, parts) - start};
}

/* Note the ranks with which the schedule's steps of a position exchange blocks. */
static void note_steps(const struct aapc_schedule *schedule, const struct coll_comm *cc, char *to,
                       char *from) {
    const int position = cc->position_of[cc->rank];
    for (int i = schedule->first_step[position]; i < schedule->first_step[position + 1]; ++i) {
        const struct aapc_step *step = &schedule->steps[i];
        if (step->to != AAPC_NOBODY)
            to[cc->rank_of[step->to]] = 1;
        if (step->from != AAPC_NOBODY)
            from[cc->rank_of[step->from]] = 1;
    }
}

int coll_pattern_run(const struct pattern *pattern, const struct aapc_choice *choice,
                     const struct coll_call *call, const struct coll_comm *cc) {
    const struct of_call of = {pattern, call, cc};
    const struct aapc_parties parties = {
        .comm = cc->comm,
        .rank_of = cc->rank_of,
        .position = cc->position_of[cc->rank],
        .message_of = part_of,
        .owner = &of,
    };
    char *done = calloc(2 * (size_t)cc->size, 1);
    if (done == NULL)
        return MPI_ERR_NO_MEM;
    const struct block_done both = {done, done + cc->size};
    note_steps(pattern->schedule, cc, done, done + cc->size);
    int error = coll_aapc_streams_between(pattern->schedule, choice, &parties);
    if (error == MPI_SUCCESS)
        error = coll_block_window(call, cc, 0, IN_FLIGHT, &both);
    free(done);
    return error;
}
