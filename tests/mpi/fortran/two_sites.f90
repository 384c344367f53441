! Two lines make the same call in turn, and a third one a longer call; rank 1 comes late to the second.
program two_sites
  use mpi
  implicit none
  integer, parameter :: calls = 60, long = 100
  integer :: mine(long), all(long), rank, ierror, i

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  mine = 1
  do i = 1, calls
    call MPI_Allreduce(mine, all, 16, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (rank == 1) call work(2.0d-3)
    call MPI_Allreduce(mine, all, 16, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (i == 1) call MPI_Allreduce(mine, all, long, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  end do
  call MPI_Finalize(ierror)

contains

  subroutine work(seconds)
    double precision, intent(in) :: seconds
    double precision :: start
    start = MPI_Wtime()
    do while (MPI_Wtime() - start < seconds)
    end do
  end subroutine
end program
