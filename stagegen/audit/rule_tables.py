"""Reads ``rules.c``: which routine serves which calls, with which parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from stagegen.audit.c_text import number, only, rows_of
from stagegen.audit.routine import BuildRoutine, Use, read_of_folder, read_parameters
from stagegen.errors import ScheduleError

_PART = r"\{&coll_routines\[(\d+)\], (\{[^{}]*\})\}"
_PARTS = rf"\{{\.parts = \(const struct coll_part\[\]\)\{{(?P<parts>{_PART}(?:, {_PART})*)\}}\}}"
_RULE = re.compile(
    r"\{(?P<last>\w+), &coll_routines\[(?P<index>\d+)\]\s*, "
    rf"(?:(?P<parameters>\{{[^{{}}]*\}})|{_PARTS})\}},\s*"
)
_TABLE = re.compile(
    r"\{COLL_(?P<collective>[A-Z_]+), COLL_KIND_(?P<kind>[A-Z]+), (?P<group>-1|\d+), "
    r"(?P<shape>\d+, \d+), (?P<hosts>\d+, \w+), (?P<ranks>\d+, \w+), (?P<confirmed>[01]), "
    r"(?P<count>\d+), (?P<rules>\w+)\},\s*"
)
_ENTRY = re.compile(
    r'\{"[^"]*", COLL_(?P<collective>[A-Z_]+), (?P<group>\d+), '
    r"(?:(?P<blocks>bytes_of_\w+), [\d.e+]+, 0\.0|NULL, 0\.0, [1-9][\d.e+]*), "
    r"\d+, \w+, &(?P<rules>\w+)\[(?P<row>\d+)\]\},\s*"
)
_BLOCKS = re.compile(r"^static const int (bytes_of_\w+)\[\] = \{(.*?)^\};", re.M | re.S)
_RULES = re.compile(r"^static const struct coll_rule (\w+)\[\] = \{(.*?)^\};", re.M | re.S)


def read_rules(
    path: Path, routines: Sequence[BuildRoutine], shapes: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, Use]]:
    """Yield the function that each rule calls, and its use.

    Args:
        path: ``rules.c``.
        routines: of ``coll_routines[]``.
        shapes: on how many hosts the cluster's ranks are, and the mean number on each, rounded
            up; then the same of each of its groups.

    Raises:
        InputError: the file is missing.
        ScheduleError: it contradicts itself or the routines; names the table.
    """
    code = read_of_folder(path)
    found = _RULES.findall(code)
    rules = dict(found)
    table = only(r"\} tables\[\] = \{(.*?)\n\};", code, "tables[]")
    rows = list(rows_of("tables", table[1], _TABLE))
    listed = {row["rules"] for row in rows}
    if listed != set(rules) or len(rules) < len(found):
        differ = ", ".join(sorted(listed.symmetric_difference(rules))) or "a table is there twice"
        raise ScheduleError(
            f"{path}: tables[] must list all tables of rules, and no others: {differ}"
        )
    for row in rows:
        where, last, ends = f"{path.name}, {row['rules']}[]", -1, True
        _check_shapes(where, row)
        of_table = list(rows_of(row["rules"], rules[row["rules"]], _RULE))
        for rule in of_table:
            last = _checked_end(where, rule["last"], last, ends)
            index = int(rule["index"])
            if index >= len(routines) or routines[index].collective != row["collective"].lower():
                raise ScheduleError(
                    f"{where}: coll_routines[{index}] belongs to another collective, or is not "
                    f"there; expected one of {row['collective'].lower()}"
                )
            ends = routines[index].is_native
            for routine, use in _uses(path, where, rule, routines):
                _check_cluster(where, routine, row, shapes)
                yield routine.function, use
        if last != _INT_MAX or not ends:
            raise ScheduleError(
                f"{where}: its last rule must be the native routine, for every size"
            )
        if int(row["count"]) != len(of_table):
            raise ScheduleError(
                f"{where}: tables[] counts {row['count']} of its {len(of_table)} rules"
            )


def _uses(
    path: Path, where: str, rule: re.Match[str], routines: Sequence[BuildRoutine]
) -> Iterator[tuple[BuildRoutine, Use]]:
    """Yield the routine of a rule, and those of its parts, each with its use."""
    own = read_parameters(path, rule["parameters"] or "{0}")
    yield routines[int(rule["index"])], Use(where, own)
    for part, parameters in re.findall(_PART, rule["parts"] or ""):
        if int(part) >= len(routines):
            last = len(routines) - 1
            raise ScheduleError(f"{where}: there is no coll_routines[{part}]; the last is {last}")
        yield routines[int(part)], Use(where, read_parameters(path, parameters))


def read_pattern_rules(
    path: Path, routines: Sequence[BuildRoutine], ranks: Sequence[int]
) -> Iterator[tuple[str, Use]]:
    """Yield the function that each rule for calls of a pattern calls, and its use.

    Args:
        path: ``patterns.c``: the rules of each pattern, and the entries that name them.
        routines: of ``coll_routines[]``.
        ranks: how many the cluster has, and each of its groups.

    Raises:
        InputError: the file is missing.
        ScheduleError: it contradicts itself or the routines; names the table.
    """
    code = read_of_folder(path)
    entries = only(r"coll_pattern_entries\[\] = \{(.*?)\n\};", code, "coll_pattern_entries[]")
    found = list(rows_of("coll_pattern_entries", entries[1], _ENTRY))
    blocks = {name: len(re.findall(r"\d+", text)) for name, text in _BLOCKS.findall(code)}
    named = [
        (row["rules"], int(row["row"]), (row["collective"].lower(), int(row["group"])))
        for row in found
    ]
    rules = dict(_RULES.findall(code))
    of = {name: whose for name, _, whose in named}
    for row, (name, _, whose) in zip(found, named, strict=True):
        _check_entry(path, name, whose == of[name], whose[1], blocks.get(row["blocks"]), ranks)
    if set(of) != set(rules):
        differ = ", ".join(sorted(set(of).symmetric_difference(rules)))
        raise ScheduleError(
            f"{path}: coll_pattern_entries[] must name all tables, and no others: {differ}"
        )
    for name, text in rules.items():
        where, last, ends, begins = f"{path.name}, {name}[]", -1, True, [0]
        collective, group = of[name]
        rows = list(rows_of(name, text, _RULE))
        for after, rule in enumerate(rows, 1):
            last = _checked_end(where, rule["last"], last, ends)
            index = int(rule["index"])
            if index >= len(routines):
                problem = f"does not exist; the last one is coll_routines[{len(routines) - 1}]"
                raise ScheduleError(f"{where}: coll_routines[{index}] {problem}")
            if (other := routines[index].collective) != collective:
                problem = f"is a routine of {other}, not of {collective}"
                raise ScheduleError(f"{where}: coll_routines[{index}] {problem}")
            ends = routines[index].is_native
            begins += [after] if ends else []
            for routine, use in _uses(path, where, rule, routines):
                _check_group(where, routine, group)
                yield routine.function, use
        if last != _INT_MAX or not ends:
            raise ScheduleError(
                f"{where}: its last rule must be the native routine, for every size"
            )
        for place in (row for own, row, _ in named if own == name and row not in begins[:-1]):
            rows_of_size = ", ".join(map(str, begins[:-1]))
            problem = f"no rule begins at its row {place}; rules begin at {rows_of_size}"
            raise ScheduleError(f"{where}: {problem}")


def _check_entry(
    path: Path, name: str, is_alike: bool, group: int, blocks: int | None, ranks: Sequence[int]
) -> None:
    """Check that an entry is for ranks that there are, and has a block for each pair of them.

    Args:
        path: of ``patterns.c``.
        name: of its rules.
        is_alike: whether all entries with these rules are for the same ranks and collective.
        group: of its ranks.
        blocks: how many it has; None for a class.
        ranks: of the cluster, and of each of its groups.
    """
    if not is_alike:
        raise ScheduleError(f"{path}: {name}[] serves several groups or collectives")
    if group >= len(ranks):
        raise ScheduleError(f"{path}: {name}[] is for group {group}, which there is not")
    if blocks is not None and blocks != ranks[group] ** 2:
        problem = f"is for {blocks} blocks, but group {group} has {ranks[group]} ranks"
        raise ScheduleError(f"{path}: {name}[] {problem}")


_INT_MAX = 2**63


def _checked_end(where: str, last_text: str, last: int, ends: bool) -> int:
    """Return the end of a row's sizes; alternatives have the same one, the native routine last."""
    end = _INT_MAX if last_text == "INT_MAX" else number(last_text)
    if end is None or end < last or (end == last) == ends:
        raise ScheduleError(f"{where}: the rule up to {last_text} does not come after those before")
    return end


def _range(text: str) -> tuple[int, int]:
    """Return the first and the last number of a range."""
    first, last = text.split(", ")
    return int(first), _INT_MAX if last == "INT_MAX" else int(last)


def _check_shapes(where: str, row: re.Match[str]) -> None:
    """Check that a table serves the shape that was measured, and alone if that confirms it."""
    measured, served = _range(row["shape"]), (_range(row["hosts"]), _range(row["ranks"]))
    for one, (first, last) in zip(measured, served, strict=True):
        if not first <= one <= last:
            problem = f"{one} is not in {first} to {last}"
            raise ScheduleError(
                f"{where}: it does not serve the shape that was measured: {problem}"
            )
        if row["confirmed"] == "1" and first < last:
            problem = f"{first} to {last}, where only {one} was"
            raise ScheduleError(
                f"{where}: it is confirmed for shapes that were not measured: {problem}"
            )


def _check_cluster(
    where: str, routine: BuildRoutine, row: re.Match[str], shapes: Sequence[tuple[int, int]]
) -> None:
    """Check that a routine with tables of the cluster, or of a group, serves all its ranks."""
    cluster, group = row["kind"] == "CLUSTER", int(row["group"])
    if not cluster and routine.needs_cluster:
        raise ScheduleError(f"{where}: {routine.function} serves only the whole cluster")
    if not cluster:
        return
    if not 0 <= group < len(shapes):
        raise ScheduleError(f"{where}: it is for group {group}, which the topology does not have")
    for what, wanted in zip(("hosts", "ranks"), shapes[group], strict=True):
        if _range(row[what]) != (wanted, wanted):
            told = " to ".join(dict.fromkeys(row[what].split(", ")))
            has = f"group {group}" if group else "the cluster"
            of_each = " on each" if what == "ranks" else ""
            raise ScheduleError(
                f"{where}: it is for {told} {what}{of_each}, but {has} has {wanted}"
            )
    _check_group(where, routine, group)


def _check_group(where: str, routine: BuildRoutine, group: int) -> None:
    """Check that a routine with tables of ranks has those of a group; 0 is the whole cluster."""
    if routine.needs_cluster and routine.group != group:
        problem = f"has tables of another group: {routine.group}, expected {group}"
        raise ScheduleError(f"{where}: {routine.function} {problem}")
