"""What the hosts of a cluster say of themselves (``drivers/doctor.sh``, ``drivers/doctor.c``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

_SIGN = "doctor\t"


@dataclass(frozen=True)
class Facts:
    """One host, in its own words.

    Attributes:
        rank: of the process that speaks; -1 if its launcher does not tell.
        name: what the library takes for the host's name: LIBCOLL_HOST, else gethostname().
        slurm: the name of Slurm's node, or nothing.
        machine: differs between machines, and between boots of one.
        cpus: how many cores are in use.
        token: what the file in the shared folder says there; nothing where it is not.
        loads: `yes`, or what the loader says of the MPI program.
        governor: of the CPUs' frequency; nothing where the kernel does not tell.
        traffic: bytes in and out by all its devices in an idle second.
    """

    rank: int
    name: str
    slurm: str
    machine: str
    cpus: int
    token: str
    loads: str
    governor: str
    traffic: int


def read_facts(output: str) -> list[Facts]:
    """Return the facts in a job's output; lines that are none, or damaged, are passed over."""
    found = []
    for line in output.splitlines():
        if line.startswith(_SIGN):
            fields = dict(field.partition("=")[::2] for field in line.split("\t")[1:])
            try:
                found.append(_facts({name: value.strip() for name, value in fields.items()}))
            except (KeyError, ValueError):
                continue
    return found


def _facts(fields: Mapping[str, str]) -> Facts:
    return Facts(
        rank=int(fields["rank"]),
        name=fields["name"],
        slurm=fields["slurm"],
        machine=fields["machine"],
        cpus=int(fields["cpus"]),
        token=fields["token"],
        loads=fields["loads"],
        governor=fields["governor"],
        traffic=int(fields["traffic"]),
    )


@dataclass(frozen=True)
class Clocks:
    """What an MPI job of all ranks said.

    Attributes:
        mpi: the library, as it names itself.
        offsets: of each rank's clock from rank 0's, in seconds.
        errors: by how much each offset may be wrong, in seconds.
    """

    mpi: str
    offsets: tuple[float, ...]
    errors: tuple[float, ...]


def read_clocks(output: str) -> Clocks | None:
    """Return the answer of the MPI job; None if there is none."""
    for line in output.splitlines():
        try:
            form = json.loads(line)
            offsets, errors = zip(*form["clocks"], strict=True)
            return Clocks(str(form["mpi"]), tuple(map(float, offsets)), tuple(map(float, errors)))
        except (KeyError, TypeError, ValueError):
            continue
    return None
