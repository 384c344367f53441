"""Open MPI's ``mpiexec`` (PRRTE) with a remote shell of our own: how the lab starts its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stagegen.measure.launch.mpi import Mpi


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
        hosts: the host of each rank; a host may come several times.
        variables: set for the ranks.
        remote_shell: called as ssh is.
        subnet: the network of the hosts, as ADDRESS/LENGTH.
        session_folder: where it keeps its own files.
    """
    control = {
        "plm_ssh_agent": str(remote_shell),
        "plm_ssh_no_tree_spawn": "1",
        "prte_if_include": subnet,
        "prte_tmpdir_base": str(session_folder),
    }
    data = {
        "btl": "tcp,self",
        "btl_tcp_if_include": subnet,
        "pml": "ob1",
        "mpi_yield_when_idle": "1",
    }
    command = [str(mpi.mpiexec), "--allow-run-as-root"]  # every user is root inside the lab
    for name, value in control.items():
        command += ["--prtemca", name, value]
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
