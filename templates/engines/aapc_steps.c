/* Carries out a schedule in phases without tokens, step after step. */
#include <stdlib.h>

#include "aapc_steps.h"

struct steps {
    struct aapc_run run;
    const struct coll_call *call;
    const struct coll_comm *cc;
    char *scratch; /* what dummies carry, and as much room for those that come; NULL: no dummies */
};

/*
 * A dummy is as long as a real message, since it is to take as long. A rank's dummy to itself is
 * an MPI message, too: it costs the rank what sending costs, and the network nothing.
 */
static int receive_dummy(const struct steps *steps, int from, MPI_Request *request) {
    return PMPI_Irecv(steps->scratch + steps->call->bytes, (int)steps->call->bytes, MPI_BYTE,
                      steps->cc->rank_of[from], COLL_TAG_DUMMY, steps->cc->comm, request);
}

static int send_dummy(const struct steps *steps, int to, MPI_Request *request) {
    return PMPI_Isend(steps->scratch, (int)steps->call->bytes, MPI_BYTE, steps->cc->rank_of[to],
                      COLL_TAG_DUMMY, steps->cc->comm, request);
}

/* Post what a step receives and sends, and wait for it. */
static int carry_out(const struct steps *steps, const struct aapc_step *step,
                     const struct aapc_dummies *dummies) {
    const int *rank_of = steps->cc->rank_of;
    MPI_Request requests[4];
    int receives = 0, sends = 0, error = MPI_SUCCESS;
    if (step->from != AAPC_NOBODY) {
        error = coll_irecv(steps->call, steps->cc, rank_of[step->from], &requests[receives]);
        receives += error == MPI_SUCCESS;
    }
    if (dummies->from != AAPC_NOBODY && error == MPI_SUCCESS) {
        error = receive_dummy(steps, dummies->from, &requests[receives]);
        receives += error == MPI_SUCCESS;
    }
    coll_stamp(COLL_STAMP_STARTED, step->phase, step->to);
    if (step->to != AAPC_NOBODY && error == MPI_SUCCESS) {
        error = coll_isend(steps->call, steps->cc, rank_of[step->to], &requests[receives]);
        sends += error == MPI_SUCCESS;
    }
    if (dummies->to != AAPC_NOBODY && error == MPI_SUCCESS) {
        error = send_dummy(steps, dummies->to, &requests[receives + sends]);
        sends += error == MPI_SUCCESS;
    }
    error = coll_complete(requests, receives, sends, error);
    coll_stamp(COLL_STAMP_ARRIVED, step->phase, step->from);
    return error;
}

/* Carry out the steps of a position in the order of the phases. */
static int carry_out_all(struct steps *steps, int position) {
    const struct aapc_schedule *schedule = steps->run.schedule;
    const struct aapc_dummies none = {AAPC_NOBODY, AAPC_NOBODY};
    for (int i = schedule->first_step[position]; i < schedule->first_step[position + 1]; ++i) {
        const struct aapc_step *step = &schedule->steps[i];
        COLL_TRY(coll_aapc_pass_barriers(&steps->run, step->phase));
        COLL_TRY(carry_out(steps, step, steps->scratch != NULL ? &schedule->dummies[i] : &none));
    }
    return coll_aapc_pass_barriers(&steps->run, schedule->phases - 1);
}

int coll_aapc_steps(const struct aapc_schedule *schedule, const struct aapc_choice *choice,
                    const struct coll_call *call, const struct coll_comm *cc) {
    const int position = cc->position_of[cc->rank];
    struct steps steps = {
        .run.schedule = schedule,
        .run.choice = choice,
        .run.comm = cc->comm,
        .call = call,
        .cc = cc,
    };
    if (schedule->dummies != NULL) {
        steps.scratch = calloc(2, (size_t)call->bytes);
        if (steps.scratch == NULL)
            return MPI_ERR_NO_MEM;
    }
    coll_stamp(COLL_STAMP_BEGUN, 0, position);
    const int error = carry_out_all(&steps, position);
    coll_stamp(COLL_STAMP_ENDED, schedule->phases, position);
    if (error == MPI_SUCCESS)
        free(steps.scratch); /* after an error, sends that were left to MPI may still read it */
    return error;
}
