/*
 * Handles of a program that may be wrong. MPI tells another error handler than that of the call's
 * communicator if it is asked about what is no handle, so that is found without asking.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include <mpi.h>

/*
 * No MPI library has a handle that is 0, as that of a variable without a value is. Those of MPICH
 * are numbers, with bits that say what they are of: so an operation in place of a type is seen,
 * too.
 */
#ifdef MPICH_VERSION
enum { COLL_KIND_OF_HANDLE = 0x3c000000 };
#define COLL_IS_HANDLE(handle, null)                                                               \
    ((handle) != 0 && (handle) != (null) &&                                                        \
     ((handle) & COLL_KIND_OF_HANDLE) == ((null) & COLL_KIND_OF_HANDLE))
#else
#define COLL_IS_HANDLE(handle, null) ((handle) != NULL && (handle) != (null))
#endif

static inline int coll_is_type(MPI_Datatype type) {
    return COLL_IS_HANDLE(type, MPI_DATATYPE_NULL);
}

static inline int coll_is_operation(MPI_Op op) {
    return COLL_IS_HANDLE(op, MPI_OP_NULL);
}

#endif
