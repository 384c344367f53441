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
    r"\{(?P<upto>\w+), &coll_routines\[(?P<index>\d+)\]\s*, "
    rf"(?:(?P<parameters>\{{[^{{}}]*\}})|{_PARTS})\}},\s*"
)
_TABLE = re.compile(
    r"\{COLL_(?P<collective>[A-Z_]+), COLL_KIND_(?P<kind>[A-Z]+), (?P<group>-1|\d+), "
    r"(?P<first>\d+), (?P<last>\w+), [01], (?P<count>\d+), (?P<rules>\w+)\},\s*"
)
_RULES = re.compile(r"^static const struct coll_rule (\w+)\[\] = \{(.*?)^\};", re.M | re.S)


def read_rules(
    path: Path, routines: Sequence[BuildRoutine], ranks: Sequence[int]
) -> Iterator[tuple[str, Use]]:
    """Yield the function that each rule calls, and its use.

    Args:
        path: ``rules.c``.
        routines: of ``coll_routines[]``.
        ranks: how many the cluster has, then each of its groups.

    Raises:
        InputError: the file is missing.
        ScheduleError: it contradicts itself or the routines; names the table.
    """
    code = read_of_folder(path)
    found = _RULES.findall(code)
    rules = dict(found)
    table = only(r"\} tables\[\] = \{(.*?)\n\};", code, "tables[]")
    rows = list(rows_of("tables", table[1], _TABLE))
    if sorted(row["rules"] for row in rows) != sorted(name for name, _ in found):
        raise ScheduleError(f"{path}: tables[] must list every table of rules exactly once")
    for row in rows:
        where, last, ends = f"{path.name}, {row['rules']}[]", -1, True
        of_table = list(rows_of(row["rules"], rules[row["rules"]], _RULE))
        for rule in of_table:
            last = _checked_end(where, rule["upto"], last, ends)
            index = int(rule["index"])
            if index >= len(routines) or routines[index].collective != row["collective"].lower():
                raise ScheduleError(
                    f"{where}: coll_routines[{index}] belongs to another collective"
                )
            _check_cluster(where, routines[index], row, ranks)
            ends = routines[index].is_native
            own = read_parameters(path, rule["parameters"] or "{0}")
            yield routines[index].function, Use(where, own)
            for part, parameters in re.findall(_PART, rule["parts"] or ""):
                if int(part) >= len(routines):
                    raise ScheduleError(f"{where}: there is no coll_routines[{part}]")
                _check_cluster(where, routines[int(part)], row, ranks)
                yield routines[int(part)].function, Use(where, read_parameters(path, parameters))
        if last != _INT_MAX or not ends:
            raise ScheduleError(
                f"{where}: its last rule must be the native routine, for every size"
            )
        if int(row["count"]) != len(of_table):
            raise ScheduleError(
                f"{where}: tables[] counts {row['count']} of its {len(of_table)} rules"
            )


_INT_MAX = 2**63


def _checked_end(where: str, upto: str, last: int, ends: bool) -> int:
    """Return the end of a row's sizes; rows with the same end go on until the native routine."""
    end = _INT_MAX if upto == "INT_MAX" else number(upto)
    if end is None or end < last or (end == last) == ends:
        raise ScheduleError(f"{where}: the rule up to {upto} does not come after those before")
    return end


def _check_cluster(
    where: str, routine: BuildRoutine, row: re.Match[str], ranks: Sequence[int]
) -> None:
    """Check that a routine with tables of the cluster, or of a group, serves all its ranks."""
    cluster, group = row["kind"] == "CLUSTER", int(row["group"])
    if not cluster and routine.needs_cluster:
        raise ScheduleError(f"{where}: {routine.function} serves only the whole cluster")
    if not cluster:
        return
    if not 0 <= group < len(ranks):
        raise ScheduleError(f"{where}: it is for group {group}, which the topology does not have")
    if (row["first"], row["last"]) != (str(ranks[group]), str(ranks[group])):
        told = " to ".join(dict.fromkeys((row["first"], row["last"])))
        has = f"group {group}" if group else "the cluster"
        raise ScheduleError(f"{where}: it is for {told} ranks, but {has} has {ranks[group]}")
    if routine.needs_cluster and routine.group != group:
        raise ScheduleError(f"{where}: {routine.function} has tables of another group")
