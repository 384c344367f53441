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

    send = np.arange(size * count, dtype="i4") % 100 + rank
    total = np.zeros(size * count, dtype="i4")
    own = np.zeros(count, dtype="i4")
    comm.Allreduce(send, total)
    digest.update(total.tobytes())
    comm.Reduce_scatter_block(send, own)
    digest.update(own.tobytes())
    comm.Reduce_scatter(send, own, [count] * size)
    digest.update(own.tobytes())
    comm.Scatter(send, own, size - 1)
    digest.update(own.tobytes())
    comm.Barrier()
    counts = [count * (i % 3) for i in range(size)]
    places = [2 * count * i for i in range(size)]
    room = np.zeros(2 * size * count, dtype="i4")
    comm.Allgatherv(send[: counts[rank]], [room, counts, places, MPI.INT])
    digest.update(room.tobytes())
    same = [count * ((rank + i) % 3) // 2 for i in range(size)]
    blocks = np.arange(room.size, dtype="i4") + rank
    room[:] = 0
    comm.Alltoallv([blocks, same, places, MPI.INT], [room, same, places, MPI.INT])
    digest.update(room.tobytes())
    for root in (0, size - 1):
        total[:] = 0
        comm.Reduce(send, total, root=root)
        digest.update(total.tobytes())
        total[:] = 0
        comm.Gather(send[:count], total, root)
        digest.update(total.tobytes())

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
