/* The ranks that a session checks and times: all of the job, some, or several communicators. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include <stdlib.h>

#include "coll.h"
#include "serve.h"

/* So many sets of communicators are kept: to make one takes messages, and so do first calls. */
enum { SETS_KEPT = 16 };

struct members {
    MPI_Comm comm; /* of this rank; MPI_COMM_NULL on ranks that do not take part */
    int rank, size;
    int own; /* the number of this rank's communicator; -1 if it does not take part */
    int communicators;
    int *first;  /* of each communicator: the rank of the job that is its rank 0 */
    char *words; /* of the command that made them; NULL for all ranks of the job */
    int *right;  /* by number of a routine: how many of its checks found nothing wrong */
};

static struct members members, kept_members[SETS_KEPT];
static int kept_count;

static int is_member(void) {
    return members.comm != MPI_COMM_NULL;
}

static int *no_checks(void) {
    return calloc((size_t)coll_routine_count, sizeof(int));
}

static int members_are_all(void) {
    static int first = 0, *right = NULL;
    if (right == NULL && (right = no_checks()) == NULL)
        return MPI_ERR_NO_MEM;
    members = (struct members){
        .comm = MPI_COMM_WORLD, .communicators = 1, .first = &first, .right = right};
    COLL_TRY(PMPI_Comm_rank(MPI_COMM_WORLD, &members.rank));
    return PMPI_Comm_size(MPI_COMM_WORLD, &members.size);
}

/* All ranks forget in the same order. */
static int forget_members(void) {
    COLL_TRY(members_are_all());
    for (int i = 0; i < kept_count; ++i) {
        free(kept_members[i].first);
        free(kept_members[i].words);
        free(kept_members[i].right);
        if (kept_members[i].comm != MPI_COMM_NULL)
            COLL_TRY(PMPI_Comm_free(&kept_members[i].comm));
    }
    kept_count = 0;
    return MPI_SUCCESS;
}

static int is_among(long rank, const int *ranks, int count) {
    for (int i = 0; i < count; ++i)
        if (ranks[i] == rank)
            return 1;
    return 0;
}

/*
 * Read distinct ranks of the job, with a bar between communicators; starts[k] is where those of the
 * k-th begin, and those of the one before end. Without any rank there is one empty communicator.
 * Returns how many there are, or 0 if there is anything else.
 */
static int parse_ranks(const char *words, int *ranks, int *starts) {
    int count = 0, communicators = 0;
    starts[0] = 0;
    for (;;) {
        char *end;
        const long rank = strtol(words, &end, 10);
        if (end != words) {
            if (rank < 0 || rank >= world_size || is_among(rank, ranks, count))
                return 0;
            ranks[count++] = (int)rank;
            words = end;
            continue;
        }
        words += strspn(words, " \n");
        const int is_last = *words == '\0', is_only = is_last && communicators == 0;
        if ((!is_last && *words != '|') || (starts[communicators] == count && !is_only))
            return 0;
        starts[++communicators] = count;
        if (is_last)
            return communicators;
        ++words;
    }
}

/* Find this rank's communicator and its place among all ranks, and the first rank of each. */
static int find_own(const int *ranks, const int *starts, struct members *made) {
    int place = 0;
    made->own = -1;
    for (int k = 0; k < made->communicators; ++k) {
        made->first[k] = ranks[starts[k]];
        for (int i = starts[k]; i < starts[k + 1]; ++i)
            if (ranks[i] == world_rank) {
                made->own = k;
                place = i;
            }
    }
    return place;
}

/* Make communicators, and keep them under the words of their command. */
static int make_members(const char *words, const int *ranks, const int *starts, int communicators) {
    if (kept_count == SETS_KEPT)
        COLL_TRY(forget_members());
    struct members made = {.communicators = communicators,
                           .first = malloc((size_t)communicators * sizeof *made.first),
                           .words = strdup(words),
                           .right = no_checks()};
    if (made.first == NULL || made.words == NULL || made.right == NULL)
        return MPI_ERR_NO_MEM;
    const int place = find_own(ranks, starts, &made), takes_part = made.own >= 0;
    const int of = takes_part ? made.own : 0;
    made.size = starts[of + 1] - starts[of];
    made.rank = takes_part ? place - starts[of] : MPI_UNDEFINED;
    COLL_TRY(
        PMPI_Comm_split(MPI_COMM_WORLD, takes_part ? made.own : MPI_UNDEFINED, place, &made.comm));
    members = kept_members[kept_count++] = made;
    return MPI_SUCCESS;
}

static int are_kept(const char *words) {
    for (int i = 0; i < kept_count; ++i) {
        if (strcmp(kept_members[i].words, words) == 0) {
            members = kept_members[i];
            return 1;
        }
    }
    return 0;
}

/* Carry out `communicator RANK... | RANK...`. */
static int choose_members(const char *words) {
    if (are_kept(words))
        return MPI_SUCCESS;
    int *ranks = malloc(((size_t)world_size * 2 + 1) * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    int *starts = ranks + world_size, error = MPI_SUCCESS;
    const int communicators = parse_ranks(words, ranks, starts);
    if (communicators == 0)
        complain("not a communicator command", "expected different ranks of the job");
    else if (starts[1] == 0)
        error = members_are_all();
    else
        error = make_members(words, ranks, starts, communicators);
    free(ranks);
    return error;
}

/* Bring the data of a communicator's first rank to rank 0 of the job, which may not be in it. */
static int bring(int communicator, void *data, size_t bytes) {
    const int first = members.first[communicator];
    if (first == 0)
        return MPI_SUCCESS;
    if (world_rank == first)
        return PMPI_Send(data, (int)bytes, MPI_BYTE, 0, 0, control);
    if (world_rank == 0)
        return PMPI_Recv(data, (int)bytes, MPI_BYTE, first, 0, control, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

#endif
