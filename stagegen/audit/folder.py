"""Proves every routine of a generated folder again, from its files of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stagegen.audit.aapc import phase_schedules
from stagegen.audit.c_text import included, read_text, require_as_written
from stagegen.audit.cluster import check_cluster
from stagegen.audit.configured import configured_rows
from stagegen.audit.hosts import leaders
from stagegen.audit.inventory import read_build
from stagegen.audit.patterns import pattern_schedule_of
from stagegen.audit.rings_and_trees import kary_trees, ring_of, tree_proof
from stagegen.audit.routine import BuildRoutine
from stagegen.audit.scheme import check_engine, scheme_name
from stagegen.audit.tables import DATA, Tables, read_data_file
from stagegen.errors import InputError, ScheduleError
from stagegen.schedule import Tree
from stagegen.schedule.verify import Proof, verify, verify_configured, verify_order
from stagegen.topology import Topology, load_topology, restricted_to


@dataclass(frozen=True)
class RoutineProof:
    """The proofs of a routine.

    Attributes:
        routine: its name, which is that of its file.
        proofs: with a label each, for the values of parameters; empty for a routine that has
            no schedule.
        unproven: whether it has tables of a user's own in its C file, which nothing here can prove.
    """

    routine: str
    proofs: tuple[tuple[str, Proof], ...]
    unproven: bool = False


_Proofs = Iterator[tuple[str, Proof]]

_OF_ORDER = "of the depth-first order in cluster.c"
_OF_LEADERS = "between hosts, ranks being their leaders"

_REMEDY = (
    "do not use this folder: a file was changed after stagegen made it, or another version made "
    "it; make it again, as from its log with `stagegen tune --from-log`"
)


def audit_folder(folder: Path) -> Iterator[RoutineProof]:
    """Yield the proof of each routine, in the order of their names.

    Raises:
        InputError: it is not a generated folder, or a file cannot be read.
        ScheduleError: a routine fails, or the folder's files contradict each other; names the
            file, where its schedule is wrong, and what to do.
    """
    try:
        yield from _audited(folder)
    except ScheduleError as error:
        raise ScheduleError(f"{error}\n{_REMEDY}") from error


def _audited(folder: Path) -> Iterator[RoutineProof]:
    sources = folder / "src"
    if not (folder / "topology.yaml").is_file() or not sources.is_dir():
        raise InputError(
            "not a generated folder: it has no topology.yaml and src/; give one of `stagegen tune`",
            folder,
        )
    topology = load_topology(folder / "topology.yaml")
    routines = read_build(sources, topology)
    groups = [topology, *(restricted_to(topology, group.hosts) for group in topology.groups)]
    ring = check_cluster(topology, sources / "cluster.c")
    for routine in sorted(routines, key=lambda routine: routine.function):
        if routine.is_native:
            yield RoutineProof(routine.function, ())
            continue
        if _is_unproven(sources, routine):
            yield RoutineProof(routine.function, (), unproven=True)
            continue
        proofs = list(_prove_tables(sources, groups[routine.group], routine))
        if routine.needs_order:
            proof = replace(verify_order(topology, ring), collective=routine.collective)
            proofs.insert(0, (_OF_ORDER, proof))
        yield RoutineProof(routine.function, tuple(proofs))


def _is_unproven(sources: Path, routine: BuildRoutine) -> bool:
    """Tell whether a routine has tables of a user's own, in its C file; check what can be."""
    path, data = _files_of(sources, routine)
    if not routine.brings_tables or _ways_for(routine.function) or data.is_file():
        return False
    with _named(str(path)):
        _check_code(read_text(path), routine, data)
    return True


def _prove_tables(sources: Path, topology: Topology, routine: BuildRoutine) -> _Proofs:
    """Prove the tables of a routine, if it has any, for the ranks that it serves.

    Its C file is not proven: only its function's name and its includes are compared.
    """
    path, data = _files_of(sources, routine)
    with _named(str(path)):
        code = read_text(path)
        _check_code(code, routine, data)
        if not data.is_file() and (routine.has_tables or _ways_for(routine.function)):
            raise ScheduleError(f'there is no proof for its tables: it has no file "{data.name}"')
    if data.is_file():
        with _named(str(data)):
            tables = read_data_file(data)
            yield from _prove(topology, tables, routine)
        with _named(str(path)):
            require_as_written(path, tables.defined)
            if "schedule" in tables.structs:
                check_engine(included(code), scheme_name(tables, routine.function))


def _files_of(sources: Path, routine: BuildRoutine) -> tuple[Path, Path]:
    """Return the C file of a routine, and where its file of tables is if it has one."""
    return sources / f"{routine.function}.c", sources / f"{routine.function}{DATA}"


def _check_code(code: str, routine: BuildRoutine, data: Path) -> None:
    """Check that the function exists, takes in its own tables, and is called as it has to be."""
    if not re.search(rf"\bint\s+{routine.function}\s*\(", code):
        raise ScheduleError(f"there is no function {routine.function}()")
    told = {name for name in included(code) if name.endswith(DATA)}
    wanted = {data.name} if data.is_file() else set()
    for name in sorted(told ^ wanted):
        if name in told:
            raise ScheduleError(f'it includes "{name}", which is not its file of tables')
        raise ScheduleError(f'it does not include its file of tables, "{name}"')
    routine.check_parameters()


def _prove(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    """Prove the tables of a routine in the way that fits their names."""
    names = " ".join(tables.names)
    for way in _ways_for(routine.function) or _WAYS:
        if re.fullmatch(way.tables, names):
            break
    else:
        raise ScheduleError(f"there is no proof for its tables: {names or 'it has none'}")
    if not (routine.needs_order if way.serves_other_hosts else routine.needs_cluster):
        raise ScheduleError(
            "routines.c lets it serve other ranks than the whole cluster or its group"
        )
    yield from way.prove(topology, tables, routine)


def _prove_phases(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    for label, schedule in phase_schedules(topology, tables, routine):
        with _named(label):
            proof = verify(topology, schedule)
        yield label, proof


def _prove_hosts(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    """Prove an alltoall between hosts, each of which has a leader."""
    for label, proof in _prove_phases(leaders(topology, tables, routine.group), tables, routine):
        yield " ".join((_OF_LEADERS, label)).strip(), proof


def _prove_ring(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    ring = ring_of(topology, tables, routine.function)
    yield "", replace(verify(topology, ring), collective=routine.collective)


def _prove_trees(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    by_arity: dict[int, list[tuple[Tree, Proof]]] = {}
    for arity, outward in kary_trees(topology, tables):
        tree = outward.reversed() if routine.collective == "reduce" else outward
        with _named(f"arity {arity}, root {tree.root}"):
            by_arity.setdefault(arity, []).append((tree, verify(topology, tree)))
    if "arity" in routine.parameters or len(by_arity) > 1:
        routine.values("arity", among=frozenset(by_arity))
    for arity, proven in by_arity.items():
        trees, proofs = zip(*proven, strict=True)
        yield f"arity {arity}", tree_proof(trees, proofs)


def _prove_configured(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    yield "", verify_configured(topology, routine.collective, configured_rows(tables))


def _prove_pattern(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    tables.require_constants({})
    yield "", verify(topology, pattern_schedule_of(topology, tables, routine))


def _prove_pattern_of_hosts(topology: Topology, tables: Tables, routine: BuildRoutine) -> _Proofs:
    """Prove the order of a pattern's messages between hosts, each of which has a leader."""
    of_leaders = leaders(topology, tables, routine.group)
    with _named(_OF_LEADERS):
        proof = verify(of_leaders, pattern_schedule_of(of_leaders, tables, routine))
    yield _OF_LEADERS, proof


@dataclass(frozen=True)
class _Way:
    """A way to prove tables, and the routines that have such tables.

    Attributes:
        routine: pattern of the names that only these have.
        tables: pattern of the names of all tables of one, in alphabetical order.
        prove: proves their tables.
        serves_other_hosts: whether each finds out on which hosts it runs, and uses its tables only
            on theirs.
    """

    routine: str
    tables: str
    prove: Callable[[Topology, Tables, BuildRoutine], _Proofs]
    serves_other_hosts: bool = False


_WAYS = (
    _Way(
        r"alltoall_aapc_\w+",
        "(dummies )?first_step (first_token )?(places )?steps( tokens)?",
        _prove_phases,
    ),
    _Way(
        r"alltoall_hierarchical(_group_\w+)?",
        "(dummies )?first_step (first_token )?leader_of (places )?steps( tokens)?",
        _prove_hosts,
        serves_other_hosts=True,
    ),
    _Way(r"\w+_logical_ring_lr[23]\w*", "place_of ring", _prove_ring),
    _Way(
        r"(bcast|reduce)_topology_(?!linear$)\w+", r"tree_[1-9]\d*( tree_[1-9]\d*)*", _prove_trees
    ),
    _Way(
        r"(allreduce|barrier|bcast|reduce)_configured_tree_\w+",
        "contributor first worker",
        _prove_configured,
    ),
    _Way(
        r"alltoallv_pattern_\w+",
        "first_step first_token parts places sizes steps tokens",
        _prove_pattern,
    ),
    _Way(
        r"alltoallv_pattern_\w+_by_host(_group_\w+)?",
        "first_step first_token leader_of parts places sizes steps tokens",
        _prove_pattern_of_hosts,
    ),
)


def _ways_for(function: str) -> list[_Way]:
    """Return the ways of proof that fit a routine's name; none if any may."""
    return [way for way in _WAYS if re.fullmatch(way.routine, function)]


@contextmanager
def _named(label: str) -> Iterator[None]:
    """Add a label to the errors of a block, unless they begin with it."""
    try:
        yield
    except ScheduleError as error:
        text = str(error)
        named = text if not label or text.startswith(f"{label}: ") else f"{label}: {text}"
        raise ScheduleError(named) from error
