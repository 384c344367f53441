"""Proves every routine of a generated folder again, from what its C files really say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from stagegen.errors import InputError, ScheduleError
from stagegen.library.reprove.c_file import CFile, read_c_file
from stagegen.library.reprove.phases import phase_schedules
from stagegen.library.reprove.shapes import kary_trees, linear_trees, ring_of
from stagegen.schedule.bounds import COLLECTIVES
from stagegen.schedule.verify import Proof, verify
from stagegen.topology import RankMap, Topology, load_topology

_BLOCK_SIZE = re.compile(r"\.block_size = (\d+)")


@dataclass(frozen=True)
class RoutineProof:
    """What is proven of a routine.

    Attributes:
        routine: its name, which is that of its file.
        proofs: with a label each, for the values of parameters; empty for a routine that has
            no schedule.
    """

    routine: str
    proofs: tuple[tuple[str, Proof], ...]


@dataclass(frozen=True)
class _Folder:
    topology: Topology
    block_sizes: frozenset[int]


_Proofs = Iterator[tuple[str, Proof]]


def reprove(folder: Path) -> Iterator[RoutineProof]:
    """Yield the proof of each routine, in the order of their names.

    Raises:
        InputError: this is no generated folder, or a file cannot be read.
        ScheduleError: a routine fails; names it, and where its schedule is wrong.
    """
    sources = folder / "src"
    if not (folder / "topology.yaml").is_file() or not sources.is_dir():
        raise InputError("not a generated folder: it has no topology.yaml and src/", folder)
    files = [path for path in sorted(sources.glob("*.c")) if _is_routine(path)]
    if not files:
        raise InputError("not a generated folder: src/ has no routines", folder)
    facts = _Folder(load_topology(folder / "topology.yaml"), frozenset(_block_sizes(sources)))
    for path in files:
        try:
            proofs = tuple(_prove(facts, read_c_file(path)))
        except ScheduleError as error:
            raise ScheduleError(f"{path}: {error}") from error
        yield RoutineProof(path.stem, proofs)


def _is_routine(path: Path) -> bool:
    return any(path.stem.startswith(f"{collective}_") for collective in COLLECTIVES)


def _block_sizes(sources: Path) -> Iterator[int]:
    """Yield all sizes of blocks that the rules, or the defaults of routines, give."""
    for name in ("rules.c", "routines.c"):
        if (sources / name).is_file():
            yield from map(int, _BLOCK_SIZE.findall(read_c_file(sources / name).code))


def _prove(folder: _Folder, c_file: CFile) -> _Proofs:
    for table, prove in _TABLES.items():
        if any(re.fullmatch(table, name) for name in c_file.arrays):
            yield from prove(folder, c_file)
            return
    if c_file.arrays:
        unknown = ", ".join(f"{name}[]" for name in c_file.arrays)
        raise ScheduleError(f"there is no proof for tables {unknown}")


def _prove_phases(folder: _Folder, c_file: CFile) -> _Proofs:
    for label, schedule in phase_schedules(folder.topology, c_file, folder.block_sizes):
        with _named(label):
            proof = verify(folder.topology, schedule)
        yield label, proof


def _prove_hosts(folder: _Folder, c_file: CFile) -> _Proofs:
    """Prove an alltoall between hosts, each of which has a leader."""
    topology = _leaders(folder.topology, c_file)
    yield from _prove_phases(replace(folder, topology=topology), c_file)


def _prove_ring(folder: _Folder, c_file: CFile) -> _Proofs:
    yield "", verify(folder.topology, ring_of(folder.topology, c_file))


def _prove_linear(folder: _Folder, c_file: CFile) -> _Proofs:
    proofs = [verify(folder.topology, t) for t in linear_trees(folder.topology, c_file)]
    yield "from every root", proofs[0]


def _prove_trees(folder: _Folder, c_file: CFile) -> _Proofs:
    by_arity: dict[int, list[Proof]] = {}
    for arity, tree in kary_trees(folder.topology, c_file):
        with _named(f"arity {arity}, root {tree.root}"):
            by_arity.setdefault(arity, []).append(verify(folder.topology, tree))
    for arity, proofs in by_arity.items():
        yield f"arity {arity}, from every root", proofs[0]


_TABLES: dict[str, Callable[[_Folder, CFile], _Proofs]] = {
    "members": _prove_hosts,
    "steps": _prove_phases,
    "ring": _prove_ring,
    "order": _prove_linear,
    r"tree_\d+": _prove_trees,
}
"""What proves a file, by a table that it has; the first that fits."""


def _leaders(topology: Topology, c_file: CFile) -> Topology:
    """Return the topology of the hosts' leaders, after comparing the tables of hosts with it."""
    first, members = c_file.array("first_member"), c_file.array("members")
    host_of = c_file.array("host_of")
    if sorted(members) != list(range(topology.rank_count)) or list(first) != sorted(first):
        raise ScheduleError("members[] does not have every rank exactly once")
    hosts = []
    for host, (start, end) in enumerate(pairwise(first)):
        names = {topology.ranks[rank] for rank in members[start:end]}
        if len(names) != 1:
            raise ScheduleError(f"host {host}: its members are not ranks of one host")
        hosts.append(names.pop())
        for rank in members[start:end]:
            if rank >= len(host_of) or host_of[rank] != host:
                raise ScheduleError(f"rank {rank}: host_of[] contradicts members[]")
    if first[:1] != (0,) or first[-1:] != (len(members),) or len(set(hosts)) != len(hosts):
        raise ScheduleError("first_member[] does not divide the ranks by hosts")
    return replace(topology, rank_map=RankMap("list", tuple(hosts)))


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Add a label to the errors of a block."""
    try:
        yield
    except ScheduleError as error:
        raise ScheduleError(f"{label}: {error}" if label else str(error)) from error
