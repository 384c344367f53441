"""The launcher that a command uses by default, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stagegen.errors import InputError
from stagegen.measure.launch.base import Launcher
from stagegen.measure.launch.hydra import HydraLauncher, unresolved
from stagegen.measure.launch.lab.launcher import LabLauncher
from stagegen.measure.launch.local import LocalLauncher
from stagegen.topology import Topology

LAUNCHERS: dict[str, Callable[[Path | None], Launcher]] = {
    "lab": LabLauncher,
    "hydra": HydraLauncher,
    "local": LocalLauncher,
}


def make_launcher(name: str, mpiexec: Path | None = None) -> Launcher:
    """Return the launcher with a name.

    Raises:
        InputError: there is none with this name.
    """
    if name not in LAUNCHERS:
        raise InputError(
            f"launcher {name!r} does not exist in this version; use one of {', '.join(LAUNCHERS)}"
        )
    return LAUNCHERS[name](mpiexec)


def choose_launcher(
    topology: Topology, asked: str | None = None, mpiexec: Path | None = None
) -> tuple[Launcher, str]:
    """Choose a launcher: the one asked for, else the topology's, else by what can be reached.

    Args:
        topology: the cluster.
        asked: the value of ``--launcher``, if given.
        mpiexec: the one to use, whatever else is installed.

    Returns:
        The launcher, and a sentence that says which it is and why.

    Raises:
        InputError: the launcher that was asked for, by option or topology, does not exist.
    """
    if asked is not None:
        return make_launcher(asked, mpiexec), f"launcher {asked}: asked for"
    if topology.launcher is not None:
        reason = f"launcher {topology.launcher}: the topology's own"
        return make_launcher(topology.launcher, mpiexec), reason
    missing = unresolved(topology)
    if not missing:
        reason = "launcher hydra: all hosts of the topology have an address"
        return make_launcher("hydra", mpiexec), reason
    reason = f"launcher lab: no address is known for {missing[0]}"
    if len(missing) > 1:
        reason += f" and {len(missing) - 1} more"
    return make_launcher("lab", mpiexec), reason
