"""Reads the routines of a folder, and the parameters with which they are called."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

from stagegen.audit.c_text import only, rows_of
from stagegen.audit.routine import BuildRoutine, Use, read_of_folder, read_parameters
from stagegen.audit.rule_tables import read_pattern_rules, read_rules
from stagegen.audit.tables import DATA
from stagegen.catalogue import load_catalogue
from stagegen.catalogue.algorithm import OWN_TABLES, PLACES, RANKS_SERVED, SCHEDULES, Algorithm
from stagegen.errors import ScheduleError
from stagegen.parts import templates_beside
from stagegen.topology import Topology

_ROUTINE = re.compile(
    r'\{"(?P<name>\w+)", COLL_(?P<collective>[A-Z_]+), (?P<constraints>[A-Z_]+(?: \| [A-Z_]+)*), '
    r"(?P<group>\d+), \d+, \w+,\s+(?P<function>\w+), (?P<parameters>\{[^{}]*\}), \w+\},\s*"
)


def read_build(sources: Path, topology: Topology) -> tuple[BuildRoutine, ...]:
    """Return the routines that ``routines.c`` lists, with the rules of ``rules.c``.

    Args:
        sources: the folder of the C files. It has rules if it belongs to a library.
        topology: of the cluster.

    Raises:
        InputError: a file is missing.
        ScheduleError: a file contradicts itself or the other files; names it.
    """
    everyone = {host.name for host in topology.hosts}
    groups = (everyone, *(group.hosts for group in topology.groups))
    shapes = [_shape(topology, hosts) for hosts in groups]
    code = read_of_folder(sources / "routines.c")
    collectives = _collectives(code)
    known = _known(sources.parent)
    routines = list(_routines(sources / "routines.c", code, collectives, topology, known))
    _check_files(sources, [routine.function for routine in routines], collectives)
    if not any((sources / name).exists() for name in ("rules.c", "dispatch.c", "dispatch.h")):
        return tuple(routines)
    uses: dict[str, list[Use]] = {r.function: list(r.uses) for r in routines}
    for function, use in read_rules(sources / "rules.c", routines, shapes):
        uses[function].append(use)
    if (sources / "patterns.c").exists():
        ranks = [sum(host in hosts for host in topology.ranks) for hosts in groups]
        for function, use in read_pattern_rules(sources / "patterns.c", routines, ranks):
            uses[function].append(use)
    return tuple(replace(routine, uses=tuple(uses[routine.function])) for routine in routines)


def _collectives(code: str) -> Sequence[str]:
    """Return the collectives of the build."""
    row = re.compile(r'\[COLL_[A-Z_]+\] = "(\w+)",\s*')
    table = only(
        r"coll_collective_names\[COLL_COLLECTIVES\] = \{(.*?)\n\};", code, "coll_collective_names[]"
    )
    return [found[1] for found in rows_of("coll_collective_names", table[1], row)]


def _routines(
    path: Path,
    code: str,
    collectives: Sequence[str],
    topology: Topology,
    known: Mapping[str, Algorithm],
) -> Iterator[BuildRoutine]:
    table = only(
        r"const struct coll_routine coll_routines\[\] = \{(.*?)\n\};", code, "coll_routines[]"
    )
    with_rows = list(rows_of("coll_routines", table[1], _ROUTINE))
    declared = re.findall(r"^coll_function (\w+);$", code, re.M)
    listed = [row["function"] for row in with_rows]
    if declared != listed or len(set(declared)) < len(declared):
        only_one = ", ".join(sorted(set(declared).symmetric_difference(listed)))
        problem = f"only one of them has {only_one}" if only_one else "in order, or by a name twice"
        raise ScheduleError(f"{path}: coll_routines[] and the declared functions differ: {problem}")
    groups = ["", *(f"_group_{group.name.replace('-', '_')}" for group in topology.groups)]
    for row in with_rows:
        function, collective = row["function"], row["collective"].lower()
        group = int(row["group"])
        if group >= len(groups):
            raise ScheduleError(
                f"{path}: {function} is for group {group}, which the topology does not have; its "
                f"last group is {len(groups) - 1}"
            )
        wanted = f"{collective}_{row['name']}{groups[group]}"
        if function != wanted or collective not in collectives:
            problem = f"is called {row['name']} of {collective}; expected the function {wanted}"
            raise ScheduleError(f"{path}: {function} {problem}")
        needs = set(row["constraints"].split(" | "))
        order = not needs.isdisjoint(PLACES.values())
        use = Use(f"{path.name}, {function}", read_parameters(path, row["parameters"]))
        cluster = "COLL_NEEDS_CLUSTER" in needs
        algorithm = known.get(f"{collective}/{row['name']}")
        need = None if algorithm is None else algorithm.needs
        if need in RANKS_SERVED and not (order or cluster):
            raise ScheduleError(
                f"{path}: {function} may serve ranks whose hosts are not known; expected "
                f"{' or '.join(sorted({*PLACES.values(), 'COLL_NEEDS_CLUSTER'}))} among its needs"
            )
        own = need == OWN_TABLES
        if own and not cluster:
            raise ScheduleError(
                f"{path}: {function} may serve ranks that its tables are not for; expected "
                "COLL_NEEDS_CLUSTER among its needs"
            )
        tables = cluster if algorithm is None else need in SCHEDULES and not algorithm.uses
        yield BuildRoutine(function, collective, group, cluster, order, (use,), own, tables)
    _check_native(path, code, declared)


def _known(folder: Path) -> Mapping[str, Algorithm]:
    """Return the algorithms by their full names; a folder may have some of a user's.

    The front matter of the templates says which ranks an algorithm may serve, and whether it has
    tables: this alone is not taken from the folder's C.
    """
    algorithms = load_catalogue(added=templates_beside(folder)).algorithms
    return {algorithm.full_name: algorithm for algorithm in algorithms}


def _check_native(path: Path, code: str, functions: list[str]) -> None:
    table = only(r"coll_native\[COLL_COLLECTIVES\] = \{(.*?)\n\};", code, "coll_native[]")
    row = re.compile(r"\[COLL_([A-Z_]+)\] = &coll_routines\[(\d+)\],\s*")
    for found in rows_of("coll_native", table[1], row):
        index, name = int(found[2]), f"{found[1].lower()}_native"
        if index >= len(functions) or functions[index] != name:
            named = functions[index] if index < len(functions) else "missing"
            raise ScheduleError(f"{path}: coll_routines[{index}] is {named}, not {name}")


def _check_files(sources: Path, functions: list[str], collectives: Sequence[str]) -> None:
    """Check that each routine is in the file of its name, and that there are no others."""
    present = {
        path.stem
        for path in sources.glob("*.c")
        if any(path.stem.startswith(f"{collective}_") for collective in collectives)
    }
    for function in functions:
        if function not in present:
            raise ScheduleError(f"{sources / function}.c: routines.c names it, but it is not there")
    for name in sorted(present - set(functions)):
        raise ScheduleError(f"{sources / name}.c: routines.c does not name it")
    for path in sorted(sources.glob(f"*{DATA}")):
        if path.name.removesuffix(DATA) not in functions:
            raise ScheduleError(f"{path}: routines.c does not name its routine")


def _shape(topology: Topology, hosts: Collection[str]) -> tuple[int, int]:
    """Return the hosts that have ranks, and their mean number of ranks, rounded up."""
    ranks = [host for host in topology.ranks if host in hosts]
    return len(set(ranks)), ceil(Fraction(len(ranks), len(set(ranks))))
