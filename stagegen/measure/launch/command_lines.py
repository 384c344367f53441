"""The command lines that start ranks: MPICH's Hydra, Open MPI's ``mpirun``, Slurm's ``srun``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from stagegen.measure.launch.mpi import Mpi

#: By version: the option that sets a parameter of the launcher, and what it calls the remote shell,
#: its options, starting all hosts from here, the network, and the launcher's own folder.
_CONTROL = {
    "4": (
        "--mca",
        {
            "shell": "plm_rsh_agent",
            "shell_options": "plm_rsh_args",
            "flat": "plm_rsh_no_tree_spawn",
            "network": "oob_tcp_if_include",
            "folder": "orte_tmpdir_base",
        },
    ),
    "5": (
        "--prtemca",
        {
            "shell": "plm_ssh_agent",
            "shell_options": "plm_ssh_args",
            "flat": "plm_ssh_no_tree_spawn",
            "network": "prte_if_include",
            "folder": "prte_tmpdir_base",
        },
    ),
}

#: Names of variables that Open MPI hands to ranks; its mpirun refuses it together with -x.
HANDED_OVER = "OMPI_MCA_mca_base_env_list"


def handed_over() -> dict[str, str]:
    """Return the variables that the user asks Open MPI to hand to ranks, with their values.

    They are for -x, in place of :data:`HANDED_OVER`.
    """
    entries = filter(None, os.environ.get(HANDED_OVER, "").split(";"))
    pairs = (entry.partition("=") for entry in entries)
    found = ((name, value if given else os.environ.get(name)) for name, given, value in pairs)
    return {name: value for name, value in found if value is not None}


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
    control: Mapping[str, str],
    data: Mapping[str, str],
    options: Sequence[str] = (),
) -> list[str]:
    """Return the command line that puts rank r on the r-th host.

    Each entry of ``--host`` is one slot, and ``--map-by seq`` takes them in their order.

    Args:
        mpi: an Open MPI.
        program: the program and its arguments.
        hosts: where the launcher reaches the host of each rank; a host may occur several times.
        variables: set for the ranks.
        control: parameters of the launcher by their names in `_CONTROL`.
        data: parameters of the MPI library.
        options: further options of ``mpirun``.
    """
    option, names = _CONTROL["4" if mpi.version.startswith("4.") else "5"]
    command = [str(mpi.mpiexec), *options]
    for name, value in control.items():
        command += [option, names[name], value]
    for name, value in data.items():
        command += ["--mca", name, value]
    for name, value in sorted(variables.items()):
        command += ["-x", f"{name}={value}"]
    entries = ",".join(f"{host}:1" for host in hosts)
    command += ["--host", entries, "--map-by", "seq", "-n", str(len(hosts))]
    return [*command, *program]


#: Seconds that srun gives the other ranks of a job after the first one has ended.
SLURM_WAIT = 30


def slurm_command(
    srun: Path,
    plugin: str,
    program: Sequence[str],
    nodes: Sequence[str],
    *,
    variables: Mapping[str, str],
) -> list[str]:
    """Return the command line that puts rank r on the r-th node of an allocation.

    ``env`` sets the variables, since a value in ``--export`` cannot hold a comma. The step overlaps
    others: the one before may still be ending. When a rank has ended, the others have
    :data:`SLURM_WAIT` seconds to do so. With ``--kill-on-bad-exit=1``, srun would end them at once,
    and the status of the job would be that of the signal.

    Args:
        srun: of Slurm 20.11 or later.
        plugin: the value of ``--mpi``.
        program: the program and its arguments.
        nodes: the node of each rank; a node may occur several times.
        variables: set for the ranks.
    """
    return [
        str(srun),
        f"--mpi={plugin}",
        *("--overlap", "--kill-on-bad-exit=0", f"--wait={SLURM_WAIT}"),
        *("--export=ALL", "--input=0", "--unbuffered"),
        f"--nodes={len(set(nodes))}",
        f"--ntasks={len(nodes)}",
        "--distribution=arbitrary",
        f"--nodelist={','.join(nodes)}",
        *("env", *(f"{name}={value}" for name, value in sorted(variables.items()))),
        *program,
    ]
