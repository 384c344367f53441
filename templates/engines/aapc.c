/* Tokens and barriers of a schedule in phases. */
#include "aapc.h"

int coll_aapc_pass_barriers(struct aapc_run *run, int phase) {
    if (!run->schedule->barriers)
        return MPI_SUCCESS;
    for (const int block = phase / run->choice->block_size; run->block < block; ++run->block)
        COLL_TRY(PMPI_Barrier(run->comm));
    return MPI_SUCCESS;
}

/*
 * Whether a token of a step counts. With blocks, it does where nothing else keeps its two messages
 * in order: within a block if there are barriers between blocks, else between blocks. The ranks at
 * its two ends decide alike, so tokens between two ranks still come in the order of the waiting.
 */
static bool counts(const struct aapc_run *run, const struct aapc_step *step,
                   const struct aapc_token *token) {
    if (run->schedule->blocks) {
        const int size = run->choice->block_size;
        const bool same = step->phase / size == token->other_phase / size;
        if (same != run->schedule->barriers)
            return false;
    }
    return token->windows >> (run->choice->window - 1) & 1;
}

int coll_aapc_await(const struct aapc_run *run, const struct aapc_step *step,
                    const struct aapc_token *token, MPI_Request *requests) {
    for (const struct aapc_token *end = token + step->awaited; token < end; ++token)
        if (counts(run, step, token))
            COLL_TRY(PMPI_Irecv(NULL, 0, MPI_BYTE, run->rank_of[token->peer], COLL_TAG_TOKEN,
                                run->comm, requests++));
    return MPI_SUCCESS;
}

int coll_aapc_pay(struct aapc_run *run, const struct aapc_step *step,
                  const struct aapc_token *token) {
    token += step->awaited;
    for (const struct aapc_token *end = token + step->owed; token < end; ++token)
        if (counts(run, step, token)) {
            COLL_TRY(PMPI_Isend(NULL, 0, MPI_BYTE, run->rank_of[token->peer], COLL_TAG_TOKEN,
                                run->comm, &run->owed[run->owed_count]));
            ++run->owed_count;
        }
    return MPI_SUCCESS;
}
