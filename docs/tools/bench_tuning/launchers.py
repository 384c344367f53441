"""Every launcher that stagegen knows, each with every MPI library that is installed here.

A small tuning is done with each pair. A launcher for clusters gets one on this machine: a
slurmctld and several slurmd, or a lab with an sshd in every host.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.slurm_here import in_allocation, slurm_cluster, why_no_slurm
from docs.tools.bench_tuning.ssh_here import NETWORK_ONLY, why_no_sshd
from docs.tools.bench_tuning.tunings import Tuning, in_session
from stagegen.errors import StagegenError
from stagegen.generate import FLAVOURS, Toolchain
from stagegen.measure.launch.base import Streams
from stagegen.measure.launch.lab.network import plan_network
from stagegen.measure.launch.lab.process import start_in_network
from stagegen.measure.launch.mpi import identify, mpiexec_beside
from stagegen.measure.launch.registry import launcher_names, make_launcher
from stagegen.topology import load_topology

#: Names the mpicc of Open MPI 5, as Debian 12 has no package of it.
OPENMPI5 = "STAGEGEN_TEST_OPENMPI5"

#: The least that is a tuning: a barrier, and two routines beside the native one.
OPTIONS = (
    *("--collectives", "barrier", "--algorithms", "dissemination,linear", "--launches", "2"),
    *("--budget", "0"),
)


#: How many characters are kept of the end of a failed tuning's output.
WORDS = 300


def compilers() -> dict[str, str]:
    """Return the compiler of each installation of MPI; what nothing names is left out."""
    named = {
        "wheel": str(Path(sys.executable).with_name("mpicc")),
        "mpich": "mpicc.mpich",
        "openmpi": "mpicc.openmpi",
        "openmpi5": os.environ.get(OPENMPI5, ""),
    }
    return {installation: name for installation, name in named.items() if name}


@dataclass(frozen=True)
class Tried:
    """A launcher with an MPI library.

    Attributes:
        launcher: its name.
        library: the MPI library and its version.
        installation: of the library, as :func:`compilers` has it; empty if there is none.
        tools: what else starts the ranks, and its version.
        hosts: how many hosts the ranks name.
        ranks: how many ranks there were.
        table: whether the tuning ended with one.
        why: why it did not.
        unavailable: what this machine lacks to try it.
    """

    launcher: str
    library: str
    installation: str = ""
    tools: str = ""
    hosts: int = 0
    ranks: int = 0
    table: bool = False
    why: str = ""
    unavailable: str = ""

    @property
    def name(self) -> str:
        """The launcher, the installation and the library in one word, as a file's name."""
        parts = filter(None, (self.launcher, self.installation, self.library))
        return re.sub(r"[^\w.-]+", "-", "-".join(parts))


def pairs() -> Iterator[tuple[Tried, Toolchain | None]]:
    """Yield each launcher with each library that it starts, and the toolchain of the library.

    A launcher without any library that is installed here has a row of its own.
    """
    found = list(_installed())
    for launcher in launcher_names():
        flavours = make_launcher(launcher).flavours
        able = [row for row in found if row[-1].flavour in flavours]
        for installation, library, one in able:
            yield Tried(launcher, library, installation), one
        for flavour in flavours:
            if all(one.flavour != flavour for _, _, one in able):
                title = FLAVOURS[flavour]
                yield Tried(launcher, title, unavailable=f"no mpicc of {title} found"), None


def _installed() -> Iterator[tuple[str, str, Toolchain]]:
    """Yield the installation, the name and the toolchain of each library that is installed here."""
    for installation, compiler in compilers().items():
        if mpicc := shutil.which(compiler):
            toolchain = Toolchain(mpicc, "make")
            mpiexec = mpiexec_beside(toolchain)
            if mpiexec and (mpi := identify(mpiexec)):
                yield installation, f"{FLAVOURS[mpi.flavour]} {mpi.version}", toolchain


def try_launcher(pair: Tried, toolchain: Toolchain | None, folder: Path) -> Tried:
    """Tune with a launcher in an empty folder; return how it went.

    Args:
        pair: the launcher and the library.
        toolchain: builds for the library; None if there is none.
        folder: for the tuning.
    """
    if toolchain is None:
        return pair
    run, why_not, tools = _WAYS.get(pair.launcher, (_plainly, _nothing, _no_tools))
    pair = replace(pair, tools=tools(toolchain))
    if reason := why_not():
        return replace(pair, unavailable=reason)
    folder.mkdir(parents=True)
    tuning = Tuning(folder, (*OPTIONS, "--launcher", pair.launcher, "--mpicc", toolchain.mpicc))
    try:
        status, text = run(tuning, toolchain)
    except subprocess.TimeoutExpired as error:
        return replace(pair, why=f"it did not end within {error.timeout:.0f} s")
    except (StagegenError, OSError) as error:
        return replace(pair, why=str(error))
    if status:
        return replace(pair, why=f"status {status}: {text.replace(str(folder), 'DIR')[-WORDS:]}")
    return _of_log(pair, tuning)


def form(tried: Tried) -> dict[str, Any]:
    """Return a row as JSON has it; the installation is its `kind`."""
    words = {"installation": "kind"}
    return {words.get(name, name): value for name, value in asdict(tried).items()}


def _of_log(pair: Tried, tuning: Tuning) -> Tried:
    """Return what the log says of hosts, and whether there is a table."""
    (environment, *_) = (one["environment"] for one in tuning.records("session"))
    machines = environment["machines"]
    return replace(
        pair,
        hosts=sum(len(one["hosts"]) for one in machines),
        ranks=sum(len(one["hosts"]) * one["ranks"] for one in machines),
        table=(tuning.output / "decision.json").exists(),
        why="" if environment["launcher"] == pair.launcher else "another launcher was used",
    )


def _plainly(tuning: Tuning, toolchain: Toolchain) -> tuple[int, str]:
    """Tune as this machine is; return the exit status and what it said."""
    return _ran(tuning.command(), tuning.variables, tuning.patience)


def _in_slurm(tuning: Tuning, toolchain: Toolchain) -> tuple[int, str]:
    folder = tuning.folder / "slurm"
    folder.mkdir()
    with slurm_cluster(folder) as variables:
        asked = {**tuning.variables, **variables}
        return _ran(in_allocation(tuning.command()), asked, tuning.patience)


def _over_ssh(tuning: Tuning, toolchain: Toolchain) -> tuple[int, str]:
    """Tune in a lab's outer namespace, with an sshd in every host."""
    command = ["env", *(f"{name}={value}" for name, value in _over_tcp(tuning, toolchain).items())]
    command += [sys.executable, "-m", "docs.tools.bench_tuning.ssh_here", str(tuning.topology)]
    output = tuning.folder / "said"
    with output.open("w") as stream:
        plan = plan_network(load_topology(tuning.topology), None)
        streams = Streams(subprocess.DEVNULL, stream, stream)
        child = start_in_network(plan, [*command, *tuning.command()], {}, streams)
        try:
            status = child.wait(tuning.patience)
        except TimeoutError:
            raise subprocess.TimeoutExpired(command, tuning.patience) from None
        finally:
            child.stop()
    return status, output.read_text(encoding="utf-8", errors="replace")


def _over_tcp(tuning: Tuning, toolchain: Toolchain) -> dict[str, str]:
    return {"PYTHONPATH": tuning.variables["PYTHONPATH"], **NETWORK_ONLY[toolchain.flavour]}


def _ran(command: Sequence[str], variables: Mapping[str, str], patience: float) -> tuple[int, str]:
    """Run a command; whatever it started ends with it, also after a Ctrl-C of this process.

    Raises:
        subprocess.TimeoutExpired: it did not end in time.
    """
    with in_session(command, variables) as process:
        _, text = process.communicate(timeout=patience)
    return process.returncode, text


def _nothing() -> str | None:
    return None


def _no_tools(toolchain: Toolchain) -> str:
    return ""


def _slurm(toolchain: Toolchain) -> str:
    return _version(["slurmctld", "-V"], r"(\d[\w.]*)", "Slurm")


def _ssh(toolchain: Toolchain) -> str:
    return _version(["ssh", "-V"], r"OpenSSH_([\w.]+)", "OpenSSH")


def _hydra_and_ssh(toolchain: Toolchain) -> str:
    mpiexec = mpiexec_beside(toolchain)
    mpi = identify(mpiexec) if mpiexec else None
    return f"Hydra {mpi.version if mpi else 'unknown'}, {_ssh(toolchain)}"


def _version(command: Sequence[str], pattern: str, title: str) -> str:
    """Return a title and the version that a command prints; `none` if there is no such command."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return f"{title}: none"
    found = re.search(pattern, asked.stdout + asked.stderr)
    return f"{title} {found[1] if found else 'unknown'}"


_Way = tuple[
    Callable[[Tuning, Toolchain], tuple[int, str]],
    Callable[[], str | None],
    Callable[[Toolchain], str],
]

#: By launcher: how it is tried, why it cannot be, and what else starts the ranks. All others are
#: tried as they are.
_WAYS: Mapping[str, _Way] = {
    "hydra": (_over_ssh, why_no_sshd, _hydra_and_ssh),
    "openmpi": (_over_ssh, why_no_sshd, _ssh),
    "slurm": (_in_slurm, why_no_slurm, _slurm),
}
