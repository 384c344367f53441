/* Operands of all ranks as plain bytes, for compositions that bring them to a rank and combine. */
#include <stdlib.h>

#include "coll.h"
#include "packed_operands.h"

const void *coll_packed_operands_input(const struct coll_call *call) {
    return call->sendbuf == MPI_IN_PLACE ? call->recvbuf : call->sendbuf;
}

/* Bytes of so many elements. */
static int bytes_of(const struct coll_call *call, int count) {
    return (int)(call->bytes / call->recv_count * count);
}

int coll_packed_operands_pack(const struct coll_call *call, const struct coll_comm *cc,
                              const void *elements, int count, char *packed) {
    int position = 0;
    return PMPI_Pack(elements, count, call->recv_type, packed, bytes_of(call, count), &position,
                     cc->comm);
}

int coll_packed_operands_unpack(const struct coll_call *call, const struct coll_comm *cc,
                                const char *packed, void *elements, int count) {
    int position = 0;
    return PMPI_Unpack(packed, bytes_of(call, count), &position, elements, count, call->recv_type,
                       cc->comm);
}

/* From the last rank to the first: alike on all ranks, so that all get the same bits. */
static int combine(const struct coll_call *call, const struct coll_comm *cc, const char *packed,
                   MPI_Aint bytes, char *theirs, char *result, int count) {
    const int last = cc->size - 1;
    COLL_TRY(coll_packed_operands_unpack(call, cc, packed + last * bytes, result, count));
    for (int rank = last - 1; rank >= 0; --rank) {
        COLL_TRY(coll_packed_operands_unpack(call, cc, packed + rank * bytes, theirs, count));
        COLL_TRY(coll_fold(call, cc, theirs, result, count, 1));
    }
    return MPI_SUCCESS;
}

int coll_packed_operands_combine(const struct coll_call *call, const struct coll_comm *cc,
                                 const char *packed, MPI_Aint bytes, char *result, int count) {
    struct coll_elements theirs;
    if (count == 0)
        return MPI_SUCCESS;
    COLL_TRY(coll_elements_for(call, count, &theirs));
    const int error = combine(call, cc, packed, bytes, theirs.data, result, count);
    free(theirs.memory);
    return error;
}
