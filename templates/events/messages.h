/*
 * Compiled into the routines by `-include`, with TRACE=1: every message is an event where its send
 * begins, and another one where its receive has ended. So nothing has to be added to a routine,
 * and the library without TRACE=1 is made of the same files.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <mpi.h>

int coll_traced_send(const void *data, int count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm);
int coll_traced_recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Status *status);
int coll_traced_isend(const void *data, int count, MPI_Datatype type, int to, int tag,
                      MPI_Comm comm, MPI_Request *request);
int coll_traced_issend(const void *data, int count, MPI_Datatype type, int to, int tag,
                       MPI_Comm comm, MPI_Request *request);
int coll_traced_irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request *request);
int coll_traced_sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                         void *in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                         MPI_Comm comm, MPI_Status *status);
int coll_traced_wait(MPI_Request *request, MPI_Status *status);
int coll_traced_test(MPI_Request *request, int *done, MPI_Status *status);
int coll_traced_waitany(int count, MPI_Request *requests, int *which, MPI_Status *status);
int coll_traced_testany(int count, MPI_Request *requests, int *which, int *done,
                        MPI_Status *status);
int coll_traced_waitall(int count, MPI_Request *requests, MPI_Status *statuses);

#if MPI_VERSION >= 4
int coll_traced_isend_c(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                        MPI_Comm comm, MPI_Request *request);
int coll_traced_issend_c(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request *request);
int coll_traced_irecv_c(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                        MPI_Comm comm, MPI_Request *request);
int coll_traced_sendrecv_c(const void *out, MPI_Count out_count, MPI_Datatype out_type, int to,
                           int out_tag, void *in, MPI_Count in_count, MPI_Datatype in_type,
                           int from, int in_tag, MPI_Comm comm, MPI_Status *status);
#endif

#ifndef MESSAGES_UNTRACED
#define PMPI_Send coll_traced_send
#define PMPI_Recv coll_traced_recv
#define PMPI_Isend coll_traced_isend
#define PMPI_Issend coll_traced_issend
#define PMPI_Irecv coll_traced_irecv
#define PMPI_Sendrecv coll_traced_sendrecv
#define PMPI_Wait coll_traced_wait
#define PMPI_Test coll_traced_test
#define PMPI_Waitany coll_traced_waitany
#define PMPI_Testany coll_traced_testany
#define PMPI_Waitall coll_traced_waitall
#if MPI_VERSION >= 4
#define PMPI_Isend_c coll_traced_isend_c
#define PMPI_Issend_c coll_traced_issend_c
#define PMPI_Irecv_c coll_traced_irecv_c
#define PMPI_Sendrecv_c coll_traced_sendrecv_c
#endif
#endif

#endif
