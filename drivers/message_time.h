/* The time of a message, by which the imbalance of arrivals is measured. */
#ifndef MESSAGE_TIME_H
#define MESSAGE_TIME_H

#include <mpi.h>

/*
 * Half of a round trip of `bytes` bytes each way between ranks on different hosts, if there are
 * such (Faraj 2006, §4.2.2.1): the median of several, and the median of some pairs. Collective;
 * all ranks get it.
 */
int message_time(MPI_Comm comm, long bytes, double *seconds);

#endif
