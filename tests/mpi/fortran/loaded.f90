! Barriers within a library that a program loads.
subroutine call_barriers(count)
    use mpi
    implicit none
    integer, intent(in) :: count
    integer :: number, error

    do number = 1, count
        call mpi_barrier(MPI_COMM_WORLD, error)
    end do
end subroutine call_barriers
