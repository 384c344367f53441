"""``stagegen tune --sbatch``: the script of a job of Slurm that runs the same command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from stagegen.errors import InputError
from stagegen.measure.launch.base import stays_here
from stagegen.measure.launch.registry import make_launcher
from stagegen.measure.launch.slurm import is_ip
from stagegen.topology import Topology

#: Seconds before the limit at which the job is told to end, so that all measurements are safe.
NOTICE = 120

_LIMIT = re.compile(r"(\d+-)?\d+(:\d+){0,2}", re.ASCII)
_OWN_OPTIONS = ("--sbatch", "--time-limit")

_SCRIPT = """\
#!/bin/bash
# Tunes the cluster {name}. Goes on where an earlier job ended: submit it again until it is done.
#SBATCH --job-name=stagegen-{name}
#SBATCH --nodes={count}
#SBATCH {tasks}
#SBATCH --nodelist={nodes}
#SBATCH --exclusive
#SBATCH --time={limit}
#SBATCH --signal=B:TERM@{notice}
#SBATCH --open-mode=append
exec {command}
"""


def job_script(topology: Topology, words: Sequence[str], limit: str) -> str:
    """Return the script of a job that tunes a cluster.

    The job has the nodes of all ranks for itself. ``exec`` puts stagegen in the place of the
    script's shell, so that the signal before the limit reaches it.

    Args:
        topology: the cluster.
        words: the command line after ``stagegen``, with ``--sbatch``.
        limit: the job's time limit, as sbatch takes it.

    Raises:
        InputError: the limit is no time, or the launcher asked for does not start jobs on nodes.
    """
    if not _LIMIT.fullmatch(limit):
        raise InputError(f"--time-limit {limit!r}: write minutes, HH:MM:SS or D-HH:MM:SS")
    hosts = [topology.host_by_name[name] for name in dict.fromkeys(topology.ranks)]
    return _SCRIPT.format(
        name=topology.name,
        count=len(hosts),
        tasks=_tasks([topology.ranks.count(host.name) for host in hosts], words),
        nodes=",".join(_node(host.name, host.address) for host in hosts),
        limit=limit,
        notice=NOTICE,
        command=shlex.join(["stagegen", *_for_the_job(words)]),
    )


def _tasks(counts: Sequence[int], words: Sequence[str]) -> str:
    """Return the option for these numbers of ranks on hosts.

    With ``--ntasks-per-node``, Slurm wants so many CPUs of each node, also of the smaller ones. But
    Open MPI's ``mpirun`` takes the slots of nodes from it.
    """
    if len(set(counts)) == 1 or _value(words, "--launcher") == "openmpi":
        return f"--ntasks-per-node={max(counts)}"
    return f"--ntasks={sum(counts)}"


def _node(name: str, address: str | None) -> str:
    """Return a host's node: its address without the user, if that is another name."""
    node = (address or name).rpartition("@")[2]
    return name if is_ip(node) or node.partition(".")[0] == name else node


def _for_the_job(words: Sequence[str]) -> list[str]:
    """Return the command line of the job: to be resumed, and with a launcher for allocations."""
    kept = list(_without_own(words))
    asked = _value(kept, "--launcher")
    if asked and stays_here(make_launcher(asked)):
        raise InputError(
            f"--sbatch: the launcher {asked} does not use the nodes of a job; leave out --launcher"
        )
    return [
        *kept,
        *([] if asked else ["--launcher", "slurm"]),
        *([] if "--resume" in kept else ["--resume"]),
    ]


def _without_own(words: Sequence[str]) -> Iterator[str]:
    """Yield the words, without the options about the script itself."""
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if option not in _OWN_OPTIONS:
            yield word
        elif not equals:
            next(rest, None)


def _value(words: Sequence[str], option: str) -> str | None:
    """Return an option's value on a command line, if it is there."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return after
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
