/* The ranks that a session checks and times: all of the job, or some. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include <stdlib.h>

#include "coll.h"
#include "serve.h"

static struct {
    MPI_Comm comm; /* MPI_COMM_NULL on ranks that do not take part */
    int rank, size;
    int first; /* the rank of the job that is its rank 0 */
} members;

static int is_member(void) {
    return members.comm != MPI_COMM_NULL;
}

static void members_are_all(void) {
    members.comm = MPI_COMM_WORLD;
    PMPI_Comm_rank(MPI_COMM_WORLD, &members.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &members.size);
    members.first = 0;
}

/* Read distinct ranks of the job; returns how many, or -1 if there is anything else. */
static int parse_ranks(const char *words, int *ranks) {
    int count = 0;
    for (;;) {
        char *end;
        const long rank = strtol(words, &end, 10);
        if (end == words)
            return words[strspn(words, " \n")] == '\0' ? count : -1;
        if (rank < 0 || rank >= world_size || count == world_size)
            return -1;
        for (int i = 0; i < count; ++i)
            if (ranks[i] == rank)
                return -1;
        ranks[count++] = (int)rank;
        words = end;
    }
}

static int make_members(const int *ranks, int count) {
    MPI_Group all, some;
    COLL_TRY(PMPI_Comm_group(MPI_COMM_WORLD, &all));
    COLL_TRY(PMPI_Group_incl(all, count, ranks, &some));
    COLL_TRY(PMPI_Comm_create(MPI_COMM_WORLD, some, &members.comm));
    COLL_TRY(PMPI_Group_rank(some, &members.rank));
    members.size = count;
    members.first = ranks[0];
    COLL_TRY(PMPI_Group_free(&some));
    return PMPI_Group_free(&all);
}

/* Carry out `communicator RANK...`. */
static int choose_members(const char *words) {
    int *ranks = malloc((size_t)world_size * sizeof *ranks);
    if (ranks == NULL)
        return MPI_ERR_NO_MEM;
    const int count = parse_ranks(words, ranks);
    int error = MPI_SUCCESS;
    if (count < 0) {
        complain("not a communicator command", "expected different ranks of the job");
    } else {
        if (is_member() && members.comm != MPI_COMM_WORLD)
            error = PMPI_Comm_free(&members.comm);
        members_are_all();
        if (error == MPI_SUCCESS && count > 0)
            error = make_members(ranks, count);
    }
    free(ranks);
    return error;
}

/* Bring the first member's data to rank 0, which may not be a member. */
static int bring(void *data, size_t bytes) {
    if (members.first == 0)
        return MPI_SUCCESS;
    if (world_rank == members.first)
        return PMPI_Send(data, (int)bytes, MPI_BYTE, 0, 0, control);
    if (world_rank == 0)
        return PMPI_Recv(data, (int)bytes, MPI_BYTE, members.first, 0, control, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

#endif
