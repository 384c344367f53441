"""What is known of each algorithm's time: where calls that adapt begin (``known.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stagegen.catalogue.selection import EVERYTHING, Selection
from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.records import Candidate
from stagegen.tune.choose import median
from stagegen.tune.decision import Table
from stagegen.tune.plan import Outcome

#: The file in a generated folder.
KNOWN = "known.json"

VERSION = 1


@dataclass(frozen=True)
class Origin:
    """Where a time comes from that programs measured (:mod:`stagegen.adaptive.times`).

    Attributes:
        files: the names of the learned files, sorted.
        calls: how many the time is the median of; 0 if programs did not try the algorithm.
        factor: what the earlier time was multiplied by if they did not; else None.
    """

    files: tuple[str, ...]
    calls: int
    factor: float | None = None


@dataclass(frozen=True)
class KnownTime:
    """The time of an algorithm at a size, with the parameters that were best there.

    Attributes:
        size: in bytes.
        candidate: the algorithm with these parameters.
        seconds: the median of a call; of scouting alone, the least.
        learned: where it is from, if programs learned it; else None.
    """

    size: int
    candidate: Candidate
    seconds: float
    learned: Origin | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the form in ``known.json``."""
        form = {"bytes": self.size, "candidate": self.candidate.spec, "seconds": self.seconds}
        if self.learned is None:
            return form
        files, calls, factor = self.learned.files, self.learned.calls, self.learned.factor
        return form | {"learned": {"files": list(files), "calls": calls, "factor": factor}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KnownTime:
        """Read the form in ``known.json``."""
        origin = data.get("learned")
        return cls(
            int(data["bytes"]),
            Candidate.from_spec(data["candidate"]),
            float(data["seconds"]),
            origin and Origin(tuple(origin["files"]), int(origin["calls"]), origin["factor"]),
        )


@dataclass(frozen=True)
class Known:
    """The times that tuning saw, by the table of rules that was made from them.

    Attributes:
        times: by collective, kind of communicator, ranks and hosts, sorted by algorithm and size.
        selection: the algorithms that competed, so may be tried.
    """

    times: Mapping[tuple[str, str, int, int], tuple[KnownTime, ...]]
    selection: Selection = EVERYTHING

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Known:
        """Return what the searches of a tuning found."""
        return cls(
            {key_of(table): times for outcome in outcomes for table, times in _by_table(outcome)}
        )

    def of_table(self, table: Table) -> tuple[KnownTime, ...]:
        """Return the times for a table; nothing if it was not made from these searches."""
        return self.times.get(key_of(table), ())

    def having(self, table: Table, times: Iterable[KnownTime]) -> Known:
        """Return the same with other times for a table."""
        ordered = sorted(times, key=lambda one: (one.candidate.algorithm, one.size))
        return replace(self, times={**self.times, key_of(table): tuple(ordered)})

    def to_text(self) -> str:
        """Return the content of ``known.json``."""
        tables = [
            {
                "collective": collective,
                "communicator": communicator,
                "ranks": ranks,
                "hosts": hosts,
                "times": [
                    one.to_json() for one in self.times[collective, communicator, ranks, hosts]
                ],
            }
            for collective, communicator, ranks, hosts in sorted(self.times)
        ]
        chosen = {
            "algorithms": self.selection.algorithms,
            "without_algorithms": self.selection.without_algorithms,
            "without_topology": self.selection.without_topology,
        }
        return json.dumps({"version": VERSION, **chosen, "tables": tables}, indent=1) + "\n"


#: Nothing was measured.
NOTHING_KNOWN = Known({})


_ADVICE = "make the library again with `stagegen tune --from-log --adaptive`"


def read_known(file: Path) -> Known:
    """Read ``known.json``.

    Raises:
        InputError: the file cannot be read, or holds no known times.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError(f"its version is {data['version']}, and {VERSION} is needed")
        return Known(
            {
                (
                    str(one["collective"]),
                    str(one["communicator"]),
                    int(one["ranks"]),
                    int(one["hosts"]),
                ): tuple(map(KnownTime.from_json, one["times"]))
                for one in data["tables"]
            },
            Selection(
                tuple(map(str, data["algorithms"])),
                tuple(map(str, data["without_algorithms"])),
                bool(data["without_topology"]),
            ),
        )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; {_ADVICE}", file) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"is no table of known times: {what_is_wrong(error)}"
        raise InputError(f"{problem}; {_ADVICE}", file) from error


def key_of(table: Table) -> tuple[str, str, int, int]:
    """Return what identifies the times of a table: collective, communicator, ranks and hosts."""
    return table.collective, table.communicator, table.ranks, table.shape.hosts


def _by_table(outcome: Outcome) -> Iterator[tuple[Table, tuple[KnownTime, ...]]]:
    times = tuple(_times(outcome))
    yield from ((table, times) for table in outcome.tables)


def _times(outcome: Outcome) -> Iterator[KnownTime]:
    """Yield the best time of each algorithm at each size."""
    best: dict[tuple[str, int], KnownTime] = {}
    for size, samples in outcome.samples.items():
        for candidate in sorted(samples):
            sample = samples[candidate]
            if not sample.seconds:
                continue
            time = KnownTime(size, candidate, median(sample))
            known = best.get((candidate.algorithm, size))
            if known is None or time.seconds < known.seconds:
                best[candidate.algorithm, size] = time
    yield from (best[key] for key in sorted(best))
