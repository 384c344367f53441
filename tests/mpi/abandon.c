/* After an error no receive writes into the application's buffers any more. */
#include "program.h"

#include "coll.h"

enum { WAITING = 3 };

static int rank, size;

/* Receives that nothing was sent for, one that is complete, and sends. */
static void give_up(MPI_Comm comm) {
    MPI_Request requests[WAITING + 3];
    int data[WAITING + 1], out[2] = {rank, rank}, token = -1;
    const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    memset(data, 0xff, sizeof data);
    for (int i = 0; i < WAITING; ++i)
        PMPI_Irecv(&data[i], 1, MPI_INT, previous, COLL_TAG_DATA, comm, &requests[i]);
    requests[WAITING] = MPI_REQUEST_NULL;
    PMPI_Isend(&out[0], 1, MPI_INT, next, COLL_TAG_TOKEN, comm, &requests[WAITING + 1]);
    requests[WAITING + 2] = MPI_REQUEST_NULL;
    EXPECT(coll_complete(requests, WAITING + 1, 2, MPI_ERR_OTHER) == MPI_ERR_OTHER);
    for (int i = 0; i < WAITING + 3; ++i)
        EXPECT(requests[i] == MPI_REQUEST_NULL);
    PMPI_Recv(&token, 1, MPI_INT, previous, COLL_TAG_TOKEN, comm, MPI_STATUS_IGNORE);
    EXPECT(token == previous);
    PMPI_Barrier(comm);
    /* The message for which the receives were posted comes now, and to another place. */
    PMPI_Sendrecv(&out[1], 1, MPI_INT, next, COLL_TAG_DATA, &token, 1, MPI_INT, previous,
                  COLL_TAG_DATA, comm, MPI_STATUS_IGNORE);
    EXPECT(token == previous);
    for (int i = 0; i < WAITING; ++i)
        EXPECT(data[i] == -1);
}

/* One message too long: its error, of its own class, and the others are complete. */
static void too_long(MPI_Comm comm) {
    MPI_Request requests[4];
    int data[3] = {-1, -1, -1}, out[4] = {5, 6, 7, 8}, class;
    const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    PMPI_Irecv(&data[0], 1, MPI_INT, previous, COLL_TAG_DATA, comm, &requests[0]);
    PMPI_Irecv(&data[1], 1, MPI_INT, previous, COLL_TAG_DATA, comm, &requests[1]);
    PMPI_Isend(out, 2, MPI_INT, next, COLL_TAG_DATA, comm, &requests[2]);
    PMPI_Isend(&out[2], 1, MPI_INT, next, COLL_TAG_DATA, comm, &requests[3]);
    MPI_Error_class(coll_complete(requests, 2, 2, MPI_SUCCESS), &class);
    EXPECT(class == MPI_ERR_TRUNCATE);
    EXPECT(data[1] == 7 && data[2] == -1);
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    give_up(comm);
    too_long(comm);
    MPI_Comm_free(&comm);
    return finish();
}
