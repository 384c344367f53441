"""Reads which routines a folder has, and with which parameters they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stagegen.errors import InputError, ScheduleError
from stagegen.library.reprove.source import number, only, read_source, rows_of
from stagegen.repository.algorithm import NATIVE, PLACES
from stagegen.schedule.bounds import COLLECTIVES
from stagegen.topology import Topology

Parameters = Mapping[str, int]

_ROUTINE = re.compile(
    r'\{"(?P<name>\w+)", COLL_(?P<collective>[A-Z_]+), (?P<constraints>[A-Z_]+(?: \| [A-Z_]+)*), '
    r"(?P<group>\d+), \d+, \w+,\s+(?P<function>\w+), (?P<parameters>\{[^{}]*\})\},\s*"
)
_RULE = re.compile(
    r"\{(?P<upto>\w+), &coll_routines\[(?P<index>\d+)\]\s*, (?P<parameters>\{[^{}]*\})\},\s*"
)
_TABLE = re.compile(
    r"\{COLL_(?P<collective>[A-Z_]+), COLL_KIND_(?P<kind>[A-Z]+), (?P<group>-1|\d+), "
    r"(?P<first>\d+), (?P<last>\w+), (?P<rules>\w+)\},\s*"
)
_RULES = re.compile(r"^static const struct coll_rule (\w+)\[\] = \{(.*?)^\};", re.M | re.S)


@dataclass(frozen=True)
class Use:
    """Where a routine is called from, and with which parameters."""

    where: str
    parameters: Parameters


@dataclass(frozen=True)
class BuildRoutine:
    """A row of ``coll_routines[]``.

    Attributes:
        function: its name.
        collective: that it is for.
        group: whose tables it has: 0 the whole cluster (or none), k its k-th group.
        needs_cluster: whether it is only called with all ranks of that group.
        needs_order: whether it is only called with ranks on hosts of the cluster.
        uses: its defaults, and the rules that name it.
    """

    function: str
    collective: str
    group: int
    needs_cluster: bool
    needs_order: bool
    uses: tuple[Use, ...]

    @property
    def is_native(self) -> bool:
        """Whether it is the MPI library's own, which has no schedule of ours."""
        return self.function == f"{self.collective}_{NATIVE}"

    def values(
        self, parameter: str, most: int = 2**31 - 1, among: frozenset[int] | None = None
    ) -> list[int]:
        """Return the values that a parameter is given, each once, ascending.

        Args:
            parameter: its name.
            most: the largest value that it may have; 1 is the smallest.
            among: the values that it may have.

        Raises:
            ScheduleError: it is not given, or one is out of range; names where.
        """
        for use in self.uses:
            value = use.parameters.get(parameter)
            if value is None:
                raise ScheduleError(f"{use.where}: {parameter} is not given")
            if not 1 <= value <= most or (among is not None and value not in among):
                allowed = f"1 to {most}" if among is None else sorted(among)
                raise ScheduleError(f"{use.where}: {parameter} is {value}, not of {allowed}")
        return sorted({use.parameters[parameter] for use in self.uses})


def read_build(sources: Path, topology: Topology) -> tuple[BuildRoutine, ...]:
    """Return the routines that ``routines.c`` lists, with the rules of ``rules.c``.

    Args:
        sources: the folder of the C files. It has rules if it is of a library.
        topology: of the cluster.

    Raises:
        InputError: a file is missing.
        ScheduleError: a file contradicts itself, or the files that are there; names it.
    """
    routines = list(_routines(sources / "routines.c", topology))
    _check_files(sources, [routine.function for routine in routines])
    if not any((sources / name).exists() for name in ("rules.c", "dispatch.c", "dispatch.h")):
        return tuple(routines)
    uses: dict[str, list[Use]] = {r.function: list(r.uses) for r in routines}
    for function, use in _rules(sources / "rules.c", routines, topology.rank_count):
        uses[function].append(use)
    return tuple(replace(routine, uses=tuple(uses[routine.function])) for routine in routines)


def _routines(path: Path, topology: Topology) -> Iterator[BuildRoutine]:
    code = _read(path)
    table = only(
        r"const struct coll_routine coll_routines\[\] = \{(.*?)\n\};", code, "coll_routines[]"
    )
    with_rows = list(rows_of("coll_routines", table[1], _ROUTINE))
    declared = re.findall(r"^coll_function (\w+);$", code, re.M)
    if declared != [row["function"] for row in with_rows] or len(set(declared)) < len(declared):
        raise ScheduleError(f"{path}: coll_routines[] is not of the functions that are declared")
    groups = ["", *(f"_group_{group.name.replace('-', '_')}" for group in topology.groups)]
    for row in with_rows:
        function, collective = row["function"], row["collective"].lower()
        group = int(row["group"])
        if group >= len(groups):
            raise ScheduleError(f"{path}: {function} is for group {group}, which there is not")
        wanted = f"{collective}_{row['name']}{groups[group]}"
        if function != wanted or collective not in COLLECTIVES:
            raise ScheduleError(f"{path}: {function} is called {row['name']} of {collective}")
        needs = set(row["constraints"].split(" | "))
        order = not needs.isdisjoint(PLACES.values())
        use = Use(f"{path.name}, {function}", _parameters(path, row["parameters"]))
        cluster = "COLL_NEEDS_CLUSTER" in needs
        yield BuildRoutine(function, collective, group, cluster, order, (use,))
    _check_native(path, code, declared)


def _check_native(path: Path, code: str, functions: list[str]) -> None:
    table = only(r"coll_native\[COLL_COLLECTIVES\] = \{(.*?)\n\};", code, "coll_native[]")
    row = re.compile(r"\[COLL_([A-Z_]+)\] = &coll_routines\[(\d+)\],\s*")
    for found in rows_of("coll_native", table[1], row):
        index, name = int(found[2]), f"{found[1].lower()}_native"
        if index >= len(functions) or functions[index] != name:
            raise ScheduleError(f"{path}: coll_routines[{index}] is not {name}")


def _check_files(sources: Path, functions: list[str]) -> None:
    """Check that each routine is in the file of its name, and that there are no others."""
    present = {
        path.stem
        for path in sources.glob("*.c")
        if any(path.stem.startswith(f"{collective}_") for collective in COLLECTIVES)
    }
    for function in functions:
        if function not in present:
            raise ScheduleError(f"{sources / function}.c: routines.c names it, but it is not there")
    for name in sorted(present - set(functions)):
        raise ScheduleError(f"{sources / name}.c: routines.c does not name it")


def _rules(path: Path, routines: list[BuildRoutine], ranks: int) -> Iterator[tuple[str, Use]]:
    """Yield which function each rule calls."""
    code = _read(path)
    found = _RULES.findall(code)
    rules = dict(found)
    table = only(r"\} tables\[\] = \{(.*?)\n\};", code, "tables[]")
    rows = list(rows_of("tables", table[1], _TABLE))
    if sorted(row["rules"] for row in rows) != sorted(name for name, _ in found):
        raise ScheduleError(f"{path}: tables[] is not of the tables of rules, each once")
    for row in rows:
        where, last, ends = f"{path.name}, {row['rules']}[]", -1, True
        for rule in rows_of(row["rules"], rules[row["rules"]], _RULE):
            last = _checked_end(where, rule["upto"], last, ends)
            index = int(rule["index"])
            if index >= len(routines) or routines[index].collective != row["collective"].lower():
                raise ScheduleError(f"{where}: coll_routines[{index}] is not of its collective")
            _check_cluster(where, routines[index], row, ranks)
            ends = routines[index].is_native
            yield routines[index].function, Use(where, _parameters(path, rule["parameters"]))
        if last != _INT_MAX or not ends:
            raise ScheduleError(f"{where}: its last rule is not native and for every size")


_INT_MAX = 2**63


def _checked_end(where: str, upto: str, last: int, ends: bool) -> int:
    """Return the end of a row's sizes; those of one end go on until the native routine."""
    end = _INT_MAX if upto == "INT_MAX" else number(upto)
    if end is None or end < last or (end == last) == ends:
        raise ScheduleError(f"{where}: the rule up to {upto} does not come after those before")
    return end


def _check_cluster(where: str, routine: BuildRoutine, row: re.Match[str], ranks: int) -> None:
    """Check that a routine with tables of the cluster serves all ranks of it."""
    sizes = row["first"], row["last"]
    if row["kind"] == "CLUSTER" and row["group"] == "0" and sizes != (str(ranks), str(ranks)):
        told = " to ".join(dict.fromkeys(sizes))
        raise ScheduleError(f"{where}: it is for {told} ranks, but the cluster has {ranks}")
    if row["kind"] != "CLUSTER" and routine.needs_cluster:
        raise ScheduleError(f"{where}: {routine.function} serves only the whole cluster")


def _parameters(path: Path, text: str) -> Parameters:
    """Return the values of an initialiser such as `{.arity = 3}`, or of `{0}`."""
    if text == "{0}":
        return {}
    values: dict[str, int] = {}
    for item in text[1:-1].split(","):
        found = re.fullmatch(r"\s*\.(\w+) = (\S+)", item)
        value = number(found[2]) if found else None
        if found is None or value is None or found[1] in values:
            raise ScheduleError(f"{path}: the parameters {text} are not understood")
        values[found[1]] = value
    return values


def _read(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"not a generated folder: src/ has no {path.name}", path.parent.parent)
    return read_source(path)
