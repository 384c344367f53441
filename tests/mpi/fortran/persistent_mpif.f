!     Persistent collectives in fixed form and by mpif.h.
      program persistent_mpif
      use, intrinsic :: iso_c_binding, only: c_int
      implicit none
      include 'mpif.h'
      integer, parameter :: word = MPI_INTEGER, plus = MPI_SUM
      integer, parameter :: world = MPI_COMM_WORLD
      integer requests(6), some(6)
      include 'persistent.inc'
      end program
