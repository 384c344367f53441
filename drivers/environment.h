/* Where a job runs, as its ranks see it; Python's side is stagegen/measure/machines.py. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <mpi.h>

/* Print a line of JSON for each rank, on rank 0; collective. Returns an MPI error code. */
int print_environment(MPI_Comm comm);

#endif
