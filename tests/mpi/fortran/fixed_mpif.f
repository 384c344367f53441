!     Fixed form and mpif.h, as programs of the 1990s.
      program fixed_mpif
      implicit none
      include 'mpif.h'
      integer absolute, operation
      external larger
      include 'collectives.inc'
      end program

      subroutine larger(in, inout, length, datatype)
      integer length, datatype, i
      integer in(length), inout(length)
      do i = 1, length
        inout(i) = max(in(i), inout(i))
      end do
      end subroutine
