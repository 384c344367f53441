! Free form and the module mpi.
program free_mpi
  use mpi
  implicit none
  integer :: absolute, operation
  external :: larger
  include 'collectives.inc'
end program

subroutine larger(in, inout, length, datatype)
  implicit none
  integer :: length, datatype
  integer :: in(length), inout(length)
  inout = max(in, inout)
end subroutine
