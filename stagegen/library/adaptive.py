"""The part of a library whose calls measure and adapt (STAR: Faraj 2006, §4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from stagegen.adaptive.known import Known, KnownTime
from stagegen.catalogue import Adaptation, Algorithm, Catalogue
from stagegen.generate import Renderer
from stagegen.generate.build import Build
from stagegen.generate.fortran import noted
from stagegen.generate.routines import Routine, c_parameters
from stagegen.library.rules import rule_tables
from stagegen.tune import DecisionTable, Table
from stagegen.tune.decision import GENERIC

#: Where a Fortran program calls, while it does: a variable of the library.
FORTRAN_SITE = "coll_fortran_site"

#: The folder of its templates, and that of the policies in it.
FOLDER = "adaptive"
_POLICIES = f"{FOLDER}/policies"


@dataclass(frozen=True)
class CMark:
    """A row of the table of marks in C: what the front matter says of a routine."""

    c: str
    function: str


@dataclass(frozen=True)
class CKnown:
    """A row of what was measured, in C."""

    routine: int
    algorithm: str
    bytes: int
    seconds: str
    c_parameters: str


@dataclass(frozen=True)
class CKnownTable:
    """What was measured for a table of rules, in C.

    Attributes:
        number: of the table of rules.
        about: the table in words.
        rows: by routine and size.
    """

    number: int
    about: str
    rows: tuple[CKnown, ...]


def adapting(catalogue: Catalogue, can: Sequence[Algorithm]) -> tuple[Algorithm, ...]:
    """Return the algorithms that adaptive calls may try, of those that the cluster can run."""
    return tuple(
        algorithm
        for algorithm in can
        if algorithm.adaptive is not None and catalogue.selection.admits(algorithm)
    )


def policies_of(renderer: Renderer) -> tuple[str, ...]:
    """Return the names of the policies, as C names them: one file each."""
    found = renderer.matching(f"{_POLICIES}/*.c")
    return tuple(PurePosixPath(path).stem for path in found)


def adaptive_sources(
    build: Build, decision: DecisionTable, known: Known, renderer: Renderer
) -> dict[str, str]:
    """Return the C files of adaptive calls, by name.

    Raises:
        GenerateError: a template is wrong.
    """
    values = {
        "marks": [_mark(routine) for routine in build.routines],
        "known": _known_tables(build, decision, known),
        "policies": policies_of(renderer),
        "fortran": [
            noted(one.function.lower(), len(one.arguments), one.has_data)
            for one in build.catalogue.described
        ],
    }
    unrendered = (*renderer.matching(f"{FOLDER}/*.c"), *renderer.matching(f"{FOLDER}/*.h"))
    files = {PurePosixPath(path).name: renderer.unrendered(path) for path in unrendered}
    for path in renderer.matching(f"{FOLDER}/*.c.j2"):
        files[PurePosixPath(path).stem] = renderer.render(path, values)
    for path in renderer.matching(f"{_POLICIES}/*.c"):
        files[f"policy_{PurePosixPath(path).name}"] = renderer.unrendered(path)
    return files


def _mark(routine: Routine) -> CMark:
    """Return what the front matter says of a routine; native ones are candidates by themselves."""
    mark = routine.described.adaptive
    if mark is None:
        return CMark("{0, 0, 0, 0, 0}", routine.function)
    return CMark(_c_mark(mark), routine.function)


def _c_mark(mark: Adaptation) -> str:
    most = "INT_MAX" if mark.max_bytes is None else str(mark.max_bytes)
    numbers = (1, mark.group, int(mark.representative), int(mark.without_hosts))
    return f"{{{', '.join(map(str, numbers))}, {most}}}"


def _known_tables(build: Build, decision: DecisionTable, known: Known) -> list[CKnownTable]:
    """Return what was measured for each table of rules, in the order of these tables."""
    index = {(r.collective, r.algorithm, r.group): r.index for r in build.routines}
    groups = {group.name: group.number for group in build.groups}
    return [
        CKnownTable(
            number,
            f"{table.collective} on {table.communicator}, {table.ranks} ranks",
            tuple(_rows(table, known.of_table(table), index, groups)),
        )
        for number, table in enumerate(rule_tables(decision))
    ]


def _rows(
    table: Table,
    times: tuple[KnownTime, ...],
    index: Mapping[tuple[str, str, int], int],
    groups: Mapping[str, int],
) -> list[CKnown]:
    """Return the rows of the routines that the library has."""
    kind, _, name = table.communicator.partition(" ")
    group = 0 if kind in GENERIC else groups.get(name, 0)
    rows = []
    for time in times:
        algorithm = time.candidate.algorithm
        own = (table.collective, algorithm, group)
        routine = index.get(own, index.get((*own[:2], 0)))
        if routine is not None:
            parameters = {} if time.candidate.bound else dict(time.candidate.parameters)
            values = c_parameters(parameters)
            rows.append(CKnown(routine, algorithm, time.size, f"{time.seconds:.9g}", values))
    return sorted(rows, key=lambda row: (row.routine, row.bytes))
