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

#include "block_window.h"
#include "message_order.h"

enum { IN_FLIGHT = 64 * 1024 /* of blocks after the schedule, in bytes */ };

struct of_call {
    const struct pattern *pattern;
    const struct coll_call *call;
    const struct coll_comm *cc;
};

/* Where part `number` of `parts` of so many bytes begins. */
static MPI_Aint start_of(MPI_Aint bytes, int number, int parts) {
    return bytes / parts * number + bytes % parts * number / parts;
}

struct aapc_message coll_pattern_part(const struct pattern *pattern, const struct aapc_step *step,
                                      bool sends, const struct aapc_message *whole) {
    const struct pattern_step *cut = pattern->parts + (step - pattern->schedule->steps);
    const int number = sends ? cut->sent : cut->received;
    const int parts = sends ? cut->sent_of : cut->received_of;
    const MPI_Aint start = start_of(whole->bytes, number, parts);
    return (struct aapc_message){whole->data + start,
                                 start_of(whole->bytes, number + 1, parts) - start};
}

static struct aapc_message part_of(const void *owner, const struct aapc_step *step, bool sends) {
    const struct of_call *of = owner;
    const int rank = of->cc->rank_of[sends ? step->to : step->from];
    const struct aapc_message whole = {
        .data = sends ? (char *)coll_send_block(of->call, rank) : coll_recv_block(of->call, rank),
        .bytes = (MPI_Aint)(sends ? coll_send_count : coll_recv_count)(of->call, rank),
    };
    return coll_pattern_part(of->pattern, step, sends, &whole);
}

void coll_pattern_note(const struct pattern *pattern, int position, const int *number_of, char *to,
                       char *from) {
    const int *first = pattern->schedule->first_step + position;
    for (int i = first[0]; i < first[1]; ++i) {
        const struct aapc_step *step = &pattern->schedule->steps[i];
        if (step->to != AAPC_NOBODY)
            to[number_of[step->to]] = 1;
        if (step->from != AAPC_NOBODY)
            from[number_of[step->from]] = 1;
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
    coll_pattern_note(pattern, parties.position, cc->rank_of, done, done + cc->size);
    int error = coll_aapc_streams_between(pattern->schedule, choice, &parties);
    if (error == MPI_SUCCESS)
        error = coll_block_window(call, cc, 0, IN_FLIGHT, &both);
    free(done);
    return error;
}
