#include "star_hub.h"

int star_to_hub(const struct coll_call *call, const struct coll_comm *cc, int rank) {
    char *block = coll_recv_block(call, rank);
    if (cc->rank == rank)
        return PMPI_Send(block, call->recv_count, call->recv_type, STAR_HUB, COLL_TAG_DATA,
                         cc->comm);
    return PMPI_Recv(block, call->recv_count, call->recv_type, rank, COLL_TAG_DATA, cc->comm,
                     MPI_STATUS_IGNORE);
}

int star_from_hub(const struct coll_call *call, const struct coll_comm *cc, int rank, int count) {
    char *first = coll_recv_block(call, 0);
    if (cc->rank == STAR_HUB)
        return PMPI_Send(first, count, call->recv_type, rank, COLL_TAG_DATA, cc->comm);
    return PMPI_Recv(first, count, call->recv_type, STAR_HUB, COLL_TAG_DATA, cc->comm,
                     MPI_STATUS_IGNORE);
}
