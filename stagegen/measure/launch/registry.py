"""All launchers by their names, and the one that a command uses by default, and why.

This is the only list of launchers: ``--launcher`` and the topology's ``launcher:`` are looked up
here. A Python package adds its own by entry points of the group ``stagegen.launchers``, others
with `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from stagegen.errors import InputError
from stagegen.generate import Toolchain
from stagegen.measure.launch.base import Launcher
from stagegen.measure.launch.hydra import HydraLauncher
from stagegen.measure.launch.lab.launcher import LabLauncher
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.launch.mpi import mpiexec_beside
from stagegen.measure.launch.openmpi import OpenMpiLauncher
from stagegen.measure.launch.slurm import SlurmLauncher, allocated
from stagegen.measure.launch.ssh import unresolved
from stagegen.topology import Topology, line_of_key

GROUP = "stagegen.launchers"

#: Makes a launcher from the ``mpiexec`` to use; None lets it look for one.
Factory = Callable[[Path | None], Launcher]

_LAUNCHERS: dict[str, Factory] = {
    "lab": LabLauncher,
    "hydra": HydraLauncher,
    "openmpi": OpenMpiLauncher,
    "slurm": SlurmLauncher,
    "local": LocalLauncher,
}


def register(name: str, factory: Factory) -> None:
    """Add a user's own launcher.

    Raises:
        InputError: the name is taken.
    """
    if _LAUNCHERS.setdefault(name, factory) is not factory:
        raise InputError(f"there is already a launcher named {name}; choose another name")


def launcher_names() -> tuple[str, ...]:
    """Return the names of all launchers: stagegen's own first."""
    added = (point.name for point in entry_points(group=GROUP))
    return tuple(dict.fromkeys([*_LAUNCHERS, *added]))


def make_launcher(name: str, mpiexec: Path | None = None) -> Launcher:
    """Return the launcher with a name.

    Raises:
        InputError: there is none with this name.
    """
    if factory := _LAUNCHERS.get(name):
        return _made(name, factory, mpiexec)
    for point in entry_points(group=GROUP, name=name):
        return _made(name, partial(_of_package, point), mpiexec)
    names = ", ".join(launcher_names())
    raise InputError(f"launcher {name!r} does not exist in this version; use one of {names}")


def _made(name: str, factory: Factory, mpiexec: Path | None) -> Launcher:
    """Return what a factory makes.

    Raises:
        InputError: it fails, or makes something without a name.
    """
    try:
        made = factory(mpiexec)
        _ = made.name
    except Exception as error:
        what = f"the launcher {name} cannot be made: {type(error).__name__}: {error}"
        raise InputError(what) from error
    return made


def _of_package(point: EntryPoint, mpiexec: Path | None) -> Launcher:
    made: Launcher = point.load()(mpiexec)
    return made


def with_mpi_of(launcher: Launcher, toolchain: Toolchain) -> Launcher:
    """Return the same launcher with the ``mpiexec`` that belongs to a compiler.

    Several MPI libraries, or versions of one, may be installed: a program is started by its own.

    Raises:
        InputError: a user's launcher cannot be made anew.
    """
    mpiexec = mpiexec_beside(toolchain)
    if mpiexec is None:
        return launcher
    if is_dataclass(launcher) and any(one.name == "mpiexec" for one in fields(launcher)):
        made: Launcher = replace(cast(Any, launcher), mpiexec=mpiexec)
        return made
    if launcher.name not in launcher_names():
        raise InputError(
            f"the launcher {launcher.name!r} is known by another name; give it that name, or a "
            "field `mpiexec`"
        )
    return make_launcher(launcher.name, mpiexec)


def choose_launcher(
    topology: Topology,
    asked: str | None = None,
    mpiexec: Path | None = None,
    file: Path | str | None = None,
) -> tuple[Launcher, str]:
    """Choose a launcher: the one asked for, else the topology's, else by what can be reached.

    Args:
        topology: the cluster.
        asked: the value of ``--launcher``, if given.
        mpiexec: the one to use, whatever else is installed.
        file: the topology's file, for errors that name its line.

    Returns:
        The launcher, and a sentence that says which it is and why.

    Raises:
        InputError: the launcher that was asked for, by option or topology, does not exist.
    """
    if asked is not None:
        return make_launcher(asked, mpiexec), f"launcher {asked}: asked for"
    if topology.launcher is not None:
        reason = f"launcher {topology.launcher}: the topology's own"
        return _of_file(topology.launcher, mpiexec, file), reason
    name, reason = _reachable(topology)
    return make_launcher(name, mpiexec), f"launcher {name}: {reason}"


def _of_file(name: str, mpiexec: Path | None, file: Path | str | None) -> Launcher:
    try:
        return make_launcher(name, mpiexec)
    except InputError as error:
        if file is None:
            raise
        raise InputError(error.message, file, line_of_key(file, "launcher")) from error


def _reachable(topology: Topology) -> tuple[str, str]:
    """Return the launcher by which the topology's hosts can be reached from here, and why."""
    if allocated(topology):
        return "slurm", "this allocation has all hosts of the topology"
    missing = unresolved(topology)
    if not missing:
        return "hydra", "all hosts of the topology have an address"
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return "lab", f"no address is known for {missing[0]}{more}"
