"""What was measured, by cluster and congestion control: docs/results/bench/.

A file has a line for each row. A line says what it is of: the hashes of what was decided and of
all routines that competed, what was tuned together, and the environment, which the file has once. A
line that is *carried* has none of these: it was taken over from the page, as its log was lost.
Whatever is measured replaces it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from docs.tools import kept
from docs.tools.bench.families import Meeting, meeting_of
from docs.tools.bench.rows import Launches, Row, row_of

FOLDER = kept.FOLDER / "bench"

#: The lists of a file, and what tells their lines apart.
_KEYS = {
    "rows": ("collective", "size"),
    "launches": ("collective", "size"),
    "meetings": ("size",),
    "overheads": ("collective",),
    "earlier": ("collective", "size"),
}

#: What a line says it is of.
CARRIED, ENVIRONMENT = "carried", "environment"

#: The environments of a file, by their hashes.
_ENVIRONMENTS = "environments"

#: What is kept of a row of `stagegen bench`.
_COLUMNS = ("collective", "size", "bound_s", "native_s", "tuned_s", "routine",
            "native_interval_s", "tuned_interval_s", "repetitions")  # fmt: skip


@dataclass(frozen=True)
class Source:
    """What a result is of.

    Attributes:
        decision: the hash of what was decided for the collective in the library compared.
        routines: the hash of all routines that competed for it.
        together: the collectives that were tuned together.
    """

    decision: str
    routines: str
    together: str


@dataclass(frozen=True)
class Kept:
    """The results of a cluster with a congestion control.

    Attributes:
        path: of the file.
        form: what it has.
    """

    path: Path
    form: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> tuple[Row, ...]:
        """Return what was compared, with the further launches of what was suspect."""
        known = {_key("launches", line): line for line in self._lines("launches")}
        return tuple(_with_launches(row_of(line), known) for line in self._lines("rows"))

    def earlier(self) -> tuple[Row, ...]:
        """Return rows of an earlier run, where nothing was measured since."""
        now = {(row.collective, row.size) for row in self.rows()}
        every = map(row_of, self._lines("earlier"))
        return tuple(row for row in every if (row.collective, row.size) not in now)

    def meetings(self) -> tuple[Meeting, ...]:
        """Return how AAPC fared against the rest."""
        return tuple(map(meeting_of, self._lines("meetings")))

    def overheads(self) -> dict[str, float]:
        """Return the nanoseconds that intercepting costs, by collective."""
        return {one["collective"]: one["ns"] for one in self._lines("overheads")}

    @property
    def has_overheads(self) -> bool:
        """Whether it was measured what intercepting costs."""
        lines = self._lines("overheads")
        return bool(lines) and not any(CARRIED in line for line in lines)

    def sources(self, name: str, points: Iterable[tuple[object, ...]]) -> set[Source | None]:
        """Return what points of a list are of; None stands for those not measured, or carried."""
        lines = {_key(name, line): line for line in self._lines(name)}
        return {_source(lines.get(point, {})) for point in points}

    def with_lines(self, name: str, lines: Iterable[Mapping[str, Any]]) -> Kept:
        """Return all that was kept, with some lines in place of those of the same points."""
        every = {_key(name, line): line for line in (*self._lines(name), *lines)}
        ordered = [every[key] for key in sorted(every)]
        return Kept(self.path, {**self.form, name: ordered})

    def with_rows(
        self, rows: Iterable[Mapping[str, Any]], source: Source, environment: Mapping[str, Any]
    ) -> Kept:
        """Return all that was kept, with rows of ``stagegen bench``, not launched again yet."""
        own = self._with_environment(kept.facts(environment))
        of = {**vars(source), ENVIRONMENT: short_hash(kept.facts(environment))}
        lines = [{name: row[name] for name in _COLUMNS if name in row} | of for row in rows]
        return own.with_lines("rows", lines)._without_launches(lines)

    def with_launches(self, found: Mapping[tuple[str, int], Launches]) -> Kept:
        """Return all that was kept, with further launches of some rows."""
        lines = (
            {
                "collective": collective,
                "size": size,
                "run": one.run,
                "native_s": one.native,
                "tuned_s": one.tuned,
            }
            for (collective, size), one in found.items()
        )
        return self.with_lines("launches", lines)

    def _without_launches(self, rows: Iterable[Mapping[str, Any]]) -> Kept:
        gone = {_key("rows", row) for row in rows}
        left = [line for line in self._lines("launches") if _key("launches", line) not in gone]
        return Kept(self.path, {**self.form, "launches": left})

    def with_meetings(self, found: Iterable[Meeting], source: Source) -> Kept:
        """Return all that was kept, with meetings of families."""
        return self.with_lines("meetings", ({**one.to_json(), **vars(source)} for one in found))

    def with_overheads(self, overheads: Mapping[str, float]) -> Kept:
        """Return all that was kept, with what intercepting costs, all of it anew."""
        own = self._with_environment(kept.facts())
        of = {ENVIRONMENT: short_hash(kept.facts())}
        lines = ({"collective": name, "ns": ns, **of} for name, ns in overheads.items())
        return Kept(self.path, {**own.form, "overheads": []}).with_lines("overheads", lines)

    def write(self) -> None:
        """Write the file, without environments that no line has any more."""
        form = {name: self.form[name] for name in _KEYS if self.form.get(name)}
        used = {line.get(ENVIRONMENT) for lines in form.values() for line in lines}
        known = self.form.get(_ENVIRONMENTS, {})
        left = {name: known[name] for name in sorted(known) if name in used}
        kept.write(self.path, {**({_ENVIRONMENTS: left} if left else {}), **form})

    def _with_environment(self, facts: Mapping[str, Any]) -> Kept:
        known = {**self.form.get(_ENVIRONMENTS, {}), short_hash(facts): facts}
        return Kept(self.path, {**self.form, _ENVIRONMENTS: known})

    def _lines(self, name: str) -> list[Mapping[str, Any]]:
        lines: list[Mapping[str, Any]] = self.form.get(name, [])
        return lines


def _with_launches(row: Row, known: Mapping[tuple[object, ...], Mapping[str, Any]]) -> Row:
    """Return a row with its further launches, where some are known."""
    line = known.get((row.collective, row.size))
    if line is None:
        return row
    times = (tuple(line[name]) for name in ("native_s", "tuned_s"))
    return replace(row, launches=Launches(line["run"], *times))


def read_kept(cluster: str, congestion: str) -> Kept:
    """Return what is kept of a cluster with a congestion control."""
    path = FOLDER / f"{cluster}-{congestion}.json"
    return Kept(path, kept.read(path) or {})


def short_hash(form: Any) -> str:
    """Return the first characters of a hash, enough to tell the parts of one file apart."""
    text = json.dumps(form, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _key(name: str, line: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(line[key] for key in _KEYS[name])


def _source(line: Mapping[str, Any]) -> Source | None:
    known = bool(line) and CARRIED not in line
    return Source(**{one.name: line[one.name] for one in fields(Source)}) if known else None
