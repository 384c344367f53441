/*
 * Messages and packing of the routines, counted: link with COUNTING of builds.py, which lets the
 * library's calls of these functions of MPI come here first.
 */
#ifndef COUNTING_H
#define COUNTING_H

#include "coll.h"

/* What this rank did since the last reset. */
static struct {
    int blocks; /* messages with data that were sent to others */
    int empty;  /* messages without data that are not tokens */
    int tokens; /* messages that tell that a rank is ready */
    int copies; /* messages to this rank itself */
    int packed; /* calls of MPI_Pack and MPI_Unpack */
} counted;

static inline void count_message(MPI_Count count, MPI_Datatype type, int to, int tag) {
    if (to == MPI_PROC_NULL)
        return;
    if (tag == COLL_TAG_COPY)
        ++counted.copies;
    else if (tag == COLL_TAG_TOKEN)
        ++counted.tokens;
    else if (coll_is_empty(count, type))
        ++counted.empty;
    else
        ++counted.blocks;
}

/* A function that sends `count` of `type` with a tag: its wrapper counts, and calls the real one.
 */
#define SENDS(name, count_type, parameters, ...)                                                   \
    int __real_##name(const void *buffer, count_type count, MPI_Datatype type, int to, int tag,    \
                      parameters);                                                                 \
    int __wrap_##name(const void *buffer, count_type count, MPI_Datatype type, int to, int tag,    \
                      parameters) {                                                                \
        count_message(count, type, to, tag);                                                       \
        return __real_##name(buffer, count, type, to, tag, __VA_ARGS__);                           \
    }
#define COMMA ,

SENDS(PMPI_Send, int, MPI_Comm comm, comm)
SENDS(PMPI_Isend, int, MPI_Comm comm COMMA MPI_Request *request, comm, request)
SENDS(PMPI_Sendrecv, int,
      void *in COMMA int in_count COMMA MPI_Datatype in_type COMMA int from COMMA int in_tag COMMA
          MPI_Comm comm COMMA MPI_Status *status,
      in, in_count, in_type, from, in_tag, comm, status)
#if MPI_VERSION >= 4
SENDS(PMPI_Isend_c, MPI_Count, MPI_Comm comm COMMA MPI_Request *request, comm, request)
SENDS(PMPI_Sendrecv_c, MPI_Count,
      void *in COMMA MPI_Count in_count COMMA MPI_Datatype in_type COMMA int from COMMA int in_tag
          COMMA MPI_Comm comm COMMA MPI_Status *status,
      in, in_count, in_type, from, in_tag, comm, status)
#endif

int __real_PMPI_Pack(const void *in, int count, MPI_Datatype type, void *out, int bytes,
                     int *position, MPI_Comm comm);
int __wrap_PMPI_Pack(const void *in, int count, MPI_Datatype type, void *out, int bytes,
                     int *position, MPI_Comm comm) {
    ++counted.packed;
    return __real_PMPI_Pack(in, count, type, out, bytes, position, comm);
}

int __real_PMPI_Unpack(const void *in, int bytes, int *position, void *out, int count,
                       MPI_Datatype type, MPI_Comm comm);
int __wrap_PMPI_Unpack(const void *in, int bytes, int *position, void *out, int count,
                       MPI_Datatype type, MPI_Comm comm) {
    ++counted.packed;
    return __real_PMPI_Unpack(in, bytes, position, out, count, type, comm);
}

#endif
