"""The launcher of a command, and the compiler of its program: both for one MPI library."""

from __future__ import annotations

from pathlib import Path

from stagegen.generate import Toolchain
from stagegen.measure.launch.base import Launcher
from stagegen.measure.launch.registry import choose_launcher, with_mpi_of
from stagegen.topology import Topology


def launcher_and_toolchain(
    topology: Topology,
    topology_file: Path | str | None,
    launcher: str | None,
    mpicc: str | None,
) -> tuple[Launcher, Toolchain, str]:
    """Return the launcher that a command uses, a compiler for it, and why it is this launcher.

    Args:
        topology: the cluster.
        topology_file: its file, for errors; None where there is none.
        launcher: the value of ``--launcher``.
        mpicc: the value of ``--mpicc``.

    Raises:
        InputError: there is no such launcher.
        GenerateError: there is no compiler of an MPI library that the launcher starts.
    """
    chosen, why = choose_launcher(topology, launcher, file=topology_file)
    toolchain = Toolchain.find(mpicc, chosen.flavours)
    return with_mpi_of(chosen, toolchain), toolchain, why
