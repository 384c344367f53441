"""A program of mpi4py: matrices that are transposed by an alltoall, and a sum that tells it.

mpiexec -n 4 python transpose.py
"""

from array import array

from mpi4py import MPI

EDGE, STEPS = 4, 10

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
own = array("d", (rank * size * EDGE + i for i in range(size * EDGE)))
turned = array("d", bytes(8 * size * EDGE))
for _ in range(STEPS):
    world.Alltoall(own, turned)
    own, turned = turned, own
right = all(own[i] == rank * size * EDGE + i for i in range(size * EDGE))
if world.allreduce(int(right)) == size and rank == 0:
    print("right")
