"""A Fourier transform of a cube there and back, by mpi4py-fft."""

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

transform = PFFT(MPI.COMM_WORLD, (8, 8, 8), dtype=complex)
cube = newDistArray(transform, False)
cube[:] = np.random.default_rng(MPI.COMM_WORLD.rank).normal(size=cube.shape)
again = transform.backward(transform.forward(cube))
assert np.allclose(again, cube)
