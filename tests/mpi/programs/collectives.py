"""An ordinary program: it knows nothing of libcoll. Prints a digest of all that it received."""

import hashlib
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
digest = hashlib.sha256()

for count in (0, 1, 7, 40, 100, 1000, 30000):
    send = np.arange(size * count, dtype="i4") + 1000 * rank
    receive = np.zeros(size * count, dtype="i4")
    comm.Alltoall(send, receive)
    digest.update(receive.tobytes())
    comm.Alltoall(MPI.IN_PLACE, receive)
    digest.update(receive.tobytes())
    comm.Allgather(send[:count], receive)
    digest.update(receive.tobytes())
    for root in (0, size - 1):
        message = np.full(count, rank + 3.5) if rank == root else np.zeros(count)
        comm.Bcast(message, root)
        digest.update(message.tobytes())

matrix = np.arange(36, dtype="f8").reshape(6, 6) * (rank + 1)
column = MPI.DOUBLE.Create_vector(6, 1, 6).Commit()
comm.Bcast([matrix, 1, column], 0)
digest.update(matrix.tobytes())
column.Free()

digest.update(repr(comm.bcast({"from": rank}, root=size - 1)).encode())
digest.update(repr(comm.allgather(rank**2)).encode())
digest.update(repr(comm.alltoall([rank * 10 + i for i in range(size)])).encode())
half = comm.Split(rank % 2, -rank)
digest.update(repr(half.allgather(rank)).encode())
half.Free()

for line in comm.gather(digest.hexdigest(), 0) or []:
    print(line)
sys.stdout.flush()
