! Free form and the module mpi_f08, where handles have types and ierror may be left out.
module operations
  implicit none
contains
  subroutine larger(in, inout, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    use mpi_f08, only: MPI_Datatype
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: x(:), y(:)
    call c_f_pointer(in, x, [length])
    call c_f_pointer(inout, y, [length])
    y = max(x, y)
  end subroutine
end module

program free_f08
  use mpi_f08
  use operations, only: larger
  implicit none
  type(MPI_Datatype) :: absolute
  type(MPI_Op) :: operation
  include 'collectives.inc'

end program
