/*
 * Counts the collectives that the library calls by itself: none where the MPI library serves.
 *
 *   hidden COUNT    with so many communicators at a time
 *   hidden unseen   where the library does not see MPI_Init, so ranks have not met
 */
#include <dlfcn.h>

#include "program.h"

#include "libcoll.h"

enum { BYTES = 100 };

static int exchanges, agreements, duplicates;

/* What libcoll calls by these names comes here. */
#define REAL(name) ((__typeof__(&name))real(#name))

static void (*real(const char *name))(void) {
    void (*function)(void);
    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function;
}

int PMPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    ++exchanges;
    return REAL(PMPI_Allgather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int PMPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
    ++agreements;
    return REAL(PMPI_Allreduce)(sendbuf, recvbuf, count, type, op, comm);
}

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made) {
    ++duplicates;
    return REAL(PMPI_Comm_create)(comm, group, made);
}

static int hidden(void) {
    return exchanges + agreements + duplicates;
}

static void broadcast(MPI_Comm comm) {
    char data[BYTES];
    memset(data, 0, sizeof data);
    MPI_Bcast(data, BYTES, MPI_BYTE, 0, comm);
}

static void gather(MPI_Comm comm) {
    char data[BYTES] = "", all[16 * BYTES];
    MPI_Gather(data, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, 0, comm);
}

static void barriers(MPI_Comm comm, int times) {
    while (times-- > 0)
        MPI_Barrier(comm);
}

/* No table is for one rank less than all; and the rule for barriers is native. */
static void native(int count) {
    int rank, size;
    MPI_Comm *comms = malloc((size_t)count * sizeof *comms);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < count; ++i) {
        if (i % 2)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        else
            MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, -rank, &comms[i]);
        if (i % 2 == 0)
            gather(comms[i]);
        barriers(comms[i], 2);
    }
    EXPECT(hidden() == 0);
    /* All these have taken nothing of what there is. */
    broadcast(MPI_COMM_WORLD);
    EXPECT(duplicates == 1);
    EXPECT(strcmp(libcoll_choice("bcast", BYTES, MPI_COMM_WORLD), "binomial") == 0);
    for (int i = 0; i < count; ++i)
        MPI_Comm_free(&comms[i]);
}

/* What a communicator is, a duplicate knows; a private communicator it makes for itself. */
static void inherited(int which) {
    MPI_Comm comm;
    MPI_Request request;
    if (which == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else if (which == 1)
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
    else
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    if (which == 2)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    exchanges = duplicates = 0;
    broadcast(comm);
    EXPECT(exchanges == 0);
    EXPECT(duplicates == 1);
    EXPECT(strcmp(libcoll_choice("bcast", BYTES, comm), "binomial") == 0);
    MPI_Comm_free(&comm);
}

/*
 * Ranks that have not met exchange once, at the first call of a size that some library might
 * serve: ranks do not know yet whether the others have the same rules.
 */
static void unseen(void) {
    MPI_Comm comm, copy;
    char none = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT(hidden() == 0);
    MPI_Bcast(&none, 0, MPI_BYTE, 0, comm);
    MPI_Gather(&none, 0, MPI_BYTE, &none, 0, MPI_BYTE, 0, comm);
    EXPECT(hidden() == 0);
    barriers(comm, 3);
    gather(comm);
    EXPECT(exchanges == 1);
    EXPECT(agreements + duplicates == 0);
    MPI_Comm_dup(comm, &copy);
    barriers(copy, 2);
    EXPECT(exchanges == 1);
    EXPECT(agreements + duplicates == 0);
    broadcast(copy);
    EXPECT(exchanges == 1);
    EXPECT(duplicates == 1);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "unseen") == 0) {
        PMPI_Init(&argc, &argv);
        unseen();
        return finish();
    }
    MPI_Init(&argc, &argv);
    EXPECT(exchanges == 1); /* of all processes, once */
    exchanges = agreements = duplicates = 0;
    native(argc > 1 ? atoi(argv[1]) : 1);
    for (int which = 0; which < 3; ++which)
        inherited(which);
    return finish();
}
