/* Mistakes in arguments are for the MPI library to find, which says best what is wrong. */
#include <limits.h>
#include <stddef.h>

#include "dispatch.h"
#include "handles.h"

/*
 * Wrong arguments are left to the MPI library, which says best what is wrong with them, and
 * before anything here asks it about them and calls another communicator's error handler. A
 * rank decides this alone, so only what is an error by the MPI standard may be found here: a
 * correct call passes on every rank. No buffer is an error where there is data of a predefined
 * type; other types may bring their own addresses (MPI_BOTTOM, which may be NULL).
 */
static int valid_buffer(const void *buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm) {
    if (comm == MPI_COMM_NULL || !coll_is_type(type) || count < 0)
        return 0;
    return buffer != MPI_IN_PLACE && (buffer != NULL || count == 0 || !coll_is_predefined(type));
}

/* Blocks of different lengths for, or from, so many ranks. */
static int valid_blocks(const void *buffer, const struct coll_blocks *blocks, int size,
                        MPI_Datatype type, MPI_Comm comm) {
    MPI_Count most = 0;
    if (!coll_is_uneven(blocks))
        return 0;
    for (int rank = 0; rank < size; ++rank) {
        const MPI_Count count = coll_count_of(blocks, rank);
        if (count < 0)
            return 0;
        most = count > most ? count : most;
    }
    return valid_buffer(buffer, most, type, comm);
}

/*
 * One buffer for both is an error where it must overlap itself; not so with displacements. Open MPI
 * takes no offence at it, and programs rely on that where a rank's own block is at its place: only
 * on one rank of them the two are the same.
 */
static int overlap(const void *sent, MPI_Datatype send_type, const void *received,
                   MPI_Datatype recv_type) {
#ifdef OPEN_MPI
    const int tolerated = 1;
#else
    const int tolerated = 0;
#endif
    return !tolerated && sent == received && sent != MPI_BOTTOM && coll_is_predefined(send_type) &&
           coll_is_predefined(recv_type);
}

/* Where the block of a rank begins. MPICH counts bytes of data, and so ignores gaps of pairs. */
static const char *block_at(const void *blocks, int rank, MPI_Count count, MPI_Datatype type) {
    MPI_Count size;
    return PMPI_Type_size_x(type, &size) == MPI_SUCCESS
               ? (const char *)blocks + rank * (MPI_Aint)(count * size)
               : NULL;
}

/*
 * Whether a rank's own block is sent from where it is to arrive, at the root, or in an allgather:
 * just what MPICH reports. Other blocks may overlap what the rank sends or receives of its own.
 * That is forbidden, too, but MPICH lets it pass on all ranks, and so this rank may not be the only
 * one to leave it to MPICH.
 */
static int overlaps_own(const struct coll_call *call, const struct coll_descriptor *descriptor,
                        int rank) {
    if (call->send_type != call->recv_type || call->send_count != call->recv_count ||
        call->send_count == 0)
        return 0;
    const void *blocks = descriptor->send == COLL_ALL ? call->sendbuf : call->recvbuf;
    const void *other = descriptor->send == COLL_ALL ? call->recvbuf : call->sendbuf;
    return overlap(other, call->send_type,
                   block_at(blocks, rank, call->recv_count, call->recv_type), call->recv_type);
}

/* What this rank of `size` sends. It is in the receive buffer if the call is in place. */
static int valid_sent(const struct coll_call *call, const struct coll_descriptor *descriptor,
                      int in_place, int size) {
    if (descriptor->reduces) {
        const void *input = in_place ? call->recvbuf : call->sendbuf;
        return descriptor->uneven
                   ? valid_blocks(input, &call->recv_blocks, size, call->recv_type, call->comm)
                   : valid_buffer(input, call->recv_count, call->recv_type, call->comm);
    }
    if (descriptor->send == COLL_NOTHING || in_place)
        return 1;
    return descriptor->uneven && descriptor->send == COLL_ALL
               ? valid_blocks(call->sendbuf, &call->send_blocks, size, call->send_type, call->comm)
               : valid_buffer(call->sendbuf, call->send_count, call->send_type, call->comm);
}

/* What this rank receives; of a reduction whose result is scattered in any lengths, its own. */
static int valid_received(const struct coll_call *call, const struct coll_descriptor *descriptor,
                          int rank, int size) {
    if (descriptor->recv == COLL_NOTHING)
        return 1;
    if (descriptor->uneven && descriptor->recv == COLL_ALL)
        return valid_blocks(call->recvbuf, &call->recv_blocks, size, call->recv_type, call->comm);
    const int scattered = descriptor->uneven && descriptor->reduces;
    const MPI_Count count = scattered ? coll_count_of(&call->recv_blocks, rank) : call->recv_count;
    return valid_buffer(call->recvbuf, count, call->recv_type, call->comm);
}

/*
 * The same where blocks differ in length. If all are exchanged, the two sides are one if they have
 * the same arrays; else only the own block of this rank is on both.
 */
static int overlaps_uneven(const struct coll_call *call, const struct coll_descriptor *descriptor,
                           int rank) {
    const struct coll_blocks *sent = &call->send_blocks, *received = &call->recv_blocks;
    if (descriptor->reduces)
        return coll_count_of(received, rank) > 0 &&
               overlap(call->sendbuf, call->recv_type, call->recvbuf, call->recv_type);
    if (call->send_type != call->recv_type || coll_count_of(received, rank) <= 0)
        return 0;
    if (descriptor->send == COLL_ALL)
        return sent->counts == received->counts && sent->large_counts == received->large_counts &&
               sent->displacements == received->displacements &&
               sent->large_displacements == received->large_displacements &&
               overlap(call->sendbuf, call->send_type, call->recvbuf, call->recv_type);
    return call->send_count > 0 &&
           overlap(
               call->sendbuf, call->send_type,
               block_at(call->recvbuf, 1, coll_displacement_of(received, rank), call->recv_type),
               call->recv_type);
}

/* Whether both sides of a call on this rank are in one buffer, and may not be. */
static int overlaps(const struct coll_call *call, const struct coll_descriptor *descriptor,
                    int rank) {
    if (descriptor->send == COLL_NOTHING)
        return 0;
    if (descriptor->uneven)
        return overlaps_uneven(call, descriptor, rank);
    if (!descriptor->reduces && (descriptor->rooted || descriptor->send == COLL_ONE))
        return overlaps_own(call, descriptor, rank);
    return overlap(call->sendbuf, descriptor->reduces ? call->recv_type : call->send_type,
                   call->recvbuf, call->recv_type);
}

/*
 * Whether a rank's arguments are free of mistakes, as far as the descriptor tells. Where there is a
 * root, what is sent or what is received counts there only, and only there may the call be in
 * place; negative roots are for intercommunicators, which are native on all ranks, or wrong.
 *
 * That a communicator has been freed is found by asking MPI about it, which tells an error handler.
 * So that is asked first, of a communicator that is not known yet; *told is the error, which is the
 * call's: the MPI library would tell it once more.
 */
int coll_valid(const struct coll_call *call, int *told) {
    const struct coll_descriptor *descriptor = &coll_descriptors[call->collective];
    int rank, size;
    *told = MPI_SUCCESS;
    if (descriptor->rooted && call->root < 0)
        return 0;
    *told = coll_member(call->comm, &rank, &size);
    if (*told != MPI_SUCCESS)
        return 0;
    if (size == 0 &&
        (descriptor->uneven || (descriptor->rooted && descriptor->send != COLL_NOTHING)))
        return 0;
    const int at_root = !descriptor->rooted || rank == call->root;
    const int sends = at_root || !coll_is_from_root(descriptor);
    const int receives = at_root || !coll_is_to_root(descriptor);
    const int send_in_place =
        at_root && descriptor->in_place == COLL_SENDBUF && call->sendbuf == MPI_IN_PLACE;
    const int recv_in_place =
        at_root && descriptor->in_place == COLL_RECVBUF && call->recvbuf == MPI_IN_PLACE;
    if (sends && !valid_sent(call, descriptor, send_in_place, size))
        return 0;
    if (receives && !recv_in_place && !valid_received(call, descriptor, rank, size))
        return 0;
    if (sends && receives && !send_in_place && !recv_in_place && overlaps(call, descriptor, rank))
        return 0;
    return !descriptor->reduces ||
           (coll_is_operation(call->op) && coll_operates_on(call->op, call->recv_type));
}

#if MPI_VERSION >= 4
static int is_counted(MPI_Count count) {
    return count >= 0 && count <= INT_MAX;
}

/*
 * A count that counts on the root only; 0 where it does not and an int could not hold it. A rank
 * that need not know whether it is the root asks MPI nothing.
 */
MPI_Count coll_at_root(MPI_Count count, int root, MPI_Comm comm) {
    int rank, size;
    if (is_counted(count) || comm == MPI_COMM_NULL ||
        coll_member(comm, &rank, &size) != MPI_SUCCESS || size == 0)
        return count;
    return rank == root ? count : 0;
}

/* Any number of elements without data is as good as none, and an int counts that. */
MPI_Count coll_with_data(MPI_Count count, MPI_Datatype type) {
    return count > INT_MAX && coll_is_type(type) && coll_is_empty(count, type) ? 0 : count;
}

/*
 * Counts of 64 bits (mpi4py makes no others). More than INT_MAX elements are more bytes than that
 * or, of an empty type, none: native on all ranks.
 */
int coll_fits(MPI_Count sendcount, MPI_Count recvcount) {
    return is_counted(sendcount) && is_counted(recvcount);
}

/* The same for a call: one that does not fit is counted as native. */
int coll_call_fits(enum coll_collective collective, MPI_Count sendcount, MPI_Count recvcount) {
    if (coll_fits(sendcount, recvcount))
        return 1;
    if (!coll_off(MPI_COMM_NULL))
        coll_trace_count(coll_native[collective], (MPI_Aint)INT_MAX + 1);
    return 0;
}
#endif
