"""Proves every routine of a generated folder again, from what its C files really say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stagegen.audit.aapc import phase_schedules
from stagegen.audit.c_file import CFile, read_c_file
from stagegen.audit.cluster import check_cluster
from stagegen.audit.hosts import leaders
from stagegen.audit.inventory import read_build
from stagegen.audit.rings_and_trees import kary_trees, ring_of, tree_proof
from stagegen.audit.routine import BuildRoutine
from stagegen.errors import InputError, ScheduleError
from stagegen.schedule import Tree
from stagegen.schedule.verify import Proof, verify, verify_order
from stagegen.topology import Topology, load_topology, restricted_to


@dataclass(frozen=True)
class RoutineProof:
    """The proofs of a routine.

    Attributes:
        routine: its name, which is that of its file.
        proofs: with a label each, for the values of parameters; empty for a routine that has
            no schedule.
    """

    routine: str
    proofs: tuple[tuple[str, Proof], ...]


_Proofs = Iterator[tuple[str, Proof]]

_MAY_BE_NONE = frozenset({"tail"})
"""Parameters that may be 0."""

_OF_ORDER = "of the depth-first order in cluster.c"
_ORDER = re.compile(r"\bcc->(order|place_of|first_place|hosts?)\b")
"""Members of a communicator that are set only if the hosts of its ranks are known."""


def audit_folder(folder: Path) -> Iterator[RoutineProof]:
    """Yield the proof of each routine, in the order of their names.

    Raises:
        InputError: it is not a generated folder, or a file cannot be read.
        ScheduleError: a routine fails, or the folder's files contradict each other; names the
            file, and where its schedule is wrong.
    """
    sources = folder / "src"
    if not (folder / "topology.yaml").is_file() or not sources.is_dir():
        raise InputError("not a generated folder: it has no topology.yaml and src/", folder)
    topology = load_topology(folder / "topology.yaml")
    routines = read_build(sources, topology)
    groups = [topology, *(restricted_to(topology, group.hosts) for group in topology.groups)]
    ring = check_cluster(topology, sources / "cluster.c")
    for routine in sorted(routines, key=lambda routine: routine.function):
        path = sources / f"{routine.function}.c"
        if routine.is_native:
            yield RoutineProof(routine.function, ())
            continue
        with _named(str(path)):
            c_file = read_c_file(path)
            _check_calls(c_file, routine)
            proofs = list(_prove_tables(groups[routine.group], c_file, routine))
            if routine.needs_order:
                proof = replace(verify_order(topology, ring), collective=routine.collective)
                proofs.insert(0, (_OF_ORDER, proof))
        yield RoutineProof(routine.function, tuple(proofs))


def _check_calls(c_file: CFile, routine: BuildRoutine) -> None:
    """Check that the function exists, and is called with all that it reads."""
    if not re.search(rf"^int {routine.function}\(const struct coll_call ", c_file.code, re.M):
        raise ScheduleError(f"there is no function {routine.function}()")
    for parameter in sorted(set(re.findall(r"\bparameters->(\w+)", c_file.code))):
        routine.values(parameter, least=int(parameter not in _MAY_BE_NONE))
    if _ORDER.search(c_file.code) and not (routine.needs_order or routine.needs_cluster):
        raise ScheduleError("routines.c lets it serve ranks whose hosts are not known")


def _prove_tables(topology: Topology, c_file: CFile, routine: BuildRoutine) -> _Proofs:
    """Prove the tables of a routine, if it has any, for the ranks that it serves."""
    kind = _kind(c_file, routine.function)
    if kind is None:
        return
    if not routine.needs_cluster:
        raise ScheduleError(
            "routines.c lets it serve other ranks than the whole cluster or its group"
        )
    yield from kind.prove(topology, c_file, routine)


def _prove_phases(topology: Topology, c_file: CFile, routine: BuildRoutine) -> _Proofs:
    for label, schedule in phase_schedules(topology, c_file, routine):
        with _named(label):
            proof = verify(topology, schedule)
        yield label, proof


def _prove_hosts(topology: Topology, c_file: CFile, routine: BuildRoutine) -> _Proofs:
    """Prove an alltoall between hosts, each of which has a leader."""
    for label, proof in _prove_phases(leaders(topology, c_file), c_file, routine):
        yield " ".join(("between hosts, ranks being their leaders", label)).strip(), proof


def _prove_ring(topology: Topology, c_file: CFile, routine: BuildRoutine) -> _Proofs:
    yield "", replace(verify(topology, ring_of(topology, c_file)), collective=routine.collective)


def _prove_trees(topology: Topology, c_file: CFile, routine: BuildRoutine) -> _Proofs:
    by_arity: dict[int, list[tuple[Tree, Proof]]] = {}
    for arity, outward in kary_trees(topology, c_file):
        tree = outward.reversed() if routine.collective == "reduce" else outward
        with _named(f"arity {arity}, root {tree.root}"):
            by_arity.setdefault(arity, []).append((tree, verify(topology, tree)))
    if "parameters->arity" in c_file.code:
        routine.values("arity", among=frozenset(by_arity))
    for arity, proven in by_arity.items():
        trees, proofs = zip(*proven, strict=True)
        yield f"arity {arity}", tree_proof(trees, proofs)


@dataclass(frozen=True)
class _Kind:
    """A kind of routines with tables.

    Attributes:
        routine: pattern of the names that only this kind has.
        tables: pattern of the names of all its tables, in alphabetical order.
        prove: proves it.
    """

    routine: str
    tables: str
    prove: Callable[[Topology, CFile, BuildRoutine], _Proofs]


_KINDS = (
    _Kind(r"alltoall_aapc_\w+", "first_step (first_token )?steps( tokens)?", _prove_phases),
    _Kind(
        r"alltoall_hierarchical(_group_\w+)?",
        "first_member first_step (first_token )?host_of members steps( tokens)?",
        _prove_hosts,
    ),
    _Kind(r"\w+_logical_ring_lr[23]\w*", "place_of ring", _prove_ring),
    _Kind(
        r"(bcast|reduce)_topology_(?!linear$)\w+", r"tree_[1-9]\d*( tree_[1-9]\d*)*", _prove_trees
    ),
)


def _kind(c_file: CFile, function: str) -> _Kind | None:
    """Return the kind of a routine by its tables; None if it neither has nor needs any."""
    tables = " ".join(sorted(c_file.arrays))
    named = [kind for kind in _KINDS if re.fullmatch(kind.routine, function)]
    for kind in named or _KINDS:
        if re.fullmatch(kind.tables, tables):
            return kind
    if tables or named:
        raise ScheduleError(f"there is no proof for its tables: {tables or 'it has none'}")
    return None


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Add a label to the errors of a block, unless they begin with it."""
    try:
        yield
    except ScheduleError as error:
        text = str(error)
        named = text if not label or text.startswith(f"{label}: ") else f"{label}: {text}"
        raise ScheduleError(named) from error
