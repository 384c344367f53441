! Persistent collectives in free form and by the module mpi_f08, where handles have types.
program persistent_f08
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi_f08
  implicit none
  integer, parameter :: word = MPI_INTEGER%MPI_VAL, plus = MPI_SUM%MPI_VAL
  integer, parameter :: world = MPI_COMM_WORLD%MPI_VAL
  type(MPI_Request) :: requests(6), some(6)
  include 'persistent.inc'

end program
