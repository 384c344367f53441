! A session with a communicator of its own, and without MPI_Init. ierror may be left out.
program sessions_f08
  use mpi_f08
  implicit none
  integer :: data(100) = 1, ranks, ierror
  type(MPI_Session) :: session
  type(MPI_Group) :: group
  type(MPI_Comm) :: comm
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
  call MPI_Group_from_session_pset(session, 'mpi://WORLD', group)
  call MPI_Comm_create_from_group(group, 'a test', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm, ierror)
  call MPI_Group_free(group)
  call MPI_Comm_size(comm, ranks)
  call MPI_Allreduce(MPI_IN_PLACE, data, size(data), MPI_INTEGER, MPI_SUM, comm)
  call MPI_Comm_free(comm)
  call MPI_Session_finalize(session, ierror)
  if (all(data == ranks) .and. ierror == MPI_SUCCESS) print '(a)', 'right'
end program
