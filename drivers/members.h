/* The ranks that a session checks and times: all of the job, some, or several communicators. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include <stdlib.h>

#include "coll.h"
#include "serve.h"

static struct {
    MPI_Comm comm; /* of this rank; MPI_COMM_NULL on ranks that do not take part */
    int rank, size;
    int number;        /* of this rank's communicator; -1 if it does not take part */
    int communicators; /* how many there are; they have no rank in common */
    int *first;        /* of each: the rank of the job that is its rank 0 */
} members;

static int is_member(void) {
    return members.comm != MPI_COMM_NULL;
}

static int members_are_all(void) {
    members.comm = MPI_COMM_WORLD;
    PMPI_Comm_rank(MPI_COMM_WORLD, &members.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &members.size);
    if (members.first == NULL)
        members.first = malloc((size_t)members.size * sizeof *members.first);
    if (members.first == NULL)
        return MPI_ERR_NO_MEM;
    members.number = 0;
    members.communicators = 1;
    members.first[0] = 0;
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

static int make_members(const int *ranks, const int *starts, int communicators) {
    int place = 0;
    members.number = -1;
    members.communicators = communicators;
    for (int k = 0; k < communicators; ++k) {
        members.first[k] = ranks[starts[k]];
        for (int i = starts[k]; i < starts[k + 1]; ++i)
            if (ranks[i] == world_rank) {
                members.number = k;
                place = i;
            }
    }
    const int takes_part = members.number >= 0, number = takes_part ? members.number : 0;
    members.size = starts[number + 1] - starts[number];
    members.rank = takes_part ? place - starts[number] : MPI_UNDEFINED;
    return PMPI_Comm_split(MPI_COMM_WORLD, takes_part ? number : MPI_UNDEFINED, place,
                           &members.comm);
}

static int change_members(const int *ranks, const int *starts, int communicators) {
    if (is_member() && members.comm != MPI_COMM_WORLD)
        COLL_TRY(PMPI_Comm_free(&members.comm));
    COLL_TRY(members_are_all());
    return starts[1] > 0 ? make_members(ranks, starts, communicators) : MPI_SUCCESS;
}

/* Carry out `communicator RANK... | RANK...`. */
static int choose_members(const char *words) {
    int *ranks = malloc(((size_t)world_size * 2 + 1) * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    int *starts = ranks + world_size, error = MPI_SUCCESS;
    const int communicators = parse_ranks(words, ranks, starts);
    if (communicators == 0)
        complain("not a communicator command", "expected different ranks of the job");
    else
        error = change_members(ranks, starts, communicators);
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
