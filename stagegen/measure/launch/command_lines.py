"""The command lines of ``mpiexec``: MPICH's (Hydra) and Open MPI's (PRRTE since version 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stagegen.measure.launch.mpi import Mpi

#: By version: the option that sets a parameter of the launcher, and the parameters for the remote
#: shell, for starting all hosts from here, for the network, and for the launcher's own folder.
_CONTROL = {
    "4": (
        "--mca",
        ("plm_rsh_agent", "plm_rsh_no_tree_spawn", "oob_tcp_if_include", "orte_tmpdir_base"),
    ),
    "5": (
        "--prtemca",
        ("plm_ssh_agent", "plm_ssh_no_tree_spawn", "prte_if_include", "prte_tmpdir_base"),
    ),
}


def hydra_command(
    mpi: Mpi,
    program: Sequence[str],
    hosts: Sequence[str],
    *,
    variables: Mapping[str, str],
    remote_shell: Path | None = None,
    device: str | None = None,
) -> list[str]:
    """Return the command line that puts rank r on the r-th host.

    Args:
        mpi: an MPICH.
        program: the program and its arguments.
        hosts: where ssh reaches the host of each rank; a host may occur several times.
        variables: set for the ranks.
        remote_shell: called as ssh is; None is ssh itself.
        device: the local network device by which the ranks' machines reach this one.
    """
    command = [str(mpi.mpiexec), "-launcher", "ssh"]
    if remote_shell is not None:
        command += ["-launcher-exec", str(remote_shell)]
    if device is not None:
        command += ["-iface", device]
    command += ["-hosts", ",".join(hosts), "-n", str(len(hosts))]
    for name, value in sorted(variables.items()):
        command += ["-genv", name, value]
    return [*command, *program]


def openmpi_command(
    mpi: Mpi,
    program: Sequence[str],
    hosts: Sequence[str],
    *,
    variables: Mapping[str, str],
    remote_shell: Path,
    subnet: str,
    session_folder: Path,
) -> list[str]:
    """Return the command line that puts rank r on the r-th host.

    Args:
        mpi: an Open MPI.
        program: the program and its arguments.
        hosts: the host of each rank; a host may occur several times.
        variables: set for the ranks.
        remote_shell: called as ssh is.
        subnet: the network of the hosts, as ADDRESS/LENGTH.
        session_folder: where it keeps its own files.
    """
    option, names = _CONTROL["4" if mpi.version.startswith("4.") else "5"]
    control = dict(zip(names, (str(remote_shell), "1", subnet, str(session_folder)), strict=True))
    data = {
        "btl": "tcp,self",
        "btl_tcp_if_include": subnet,
        "pml": "ob1",
        "mpi_yield_when_idle": "1",
    }
    command = [str(mpi.mpiexec), "--allow-run-as-root"]  # every user is root inside the lab
    for name, value in control.items():
        command += [option, name, value]
    for name, value in data.items():
        command += ["--mca", name, value]
    for name, value in sorted(variables.items()):
        command += ["-x", f"{name}={value}"]
    entries = [f"{host}:1" for host in hosts]
    command += [
        "--host",
        ",".join(entries),
        "--map-by",
        "seq",
        "--bind-to",
        "none",
        "-n",
        str(len(hosts)),
    ]
    return [*command, *program]
