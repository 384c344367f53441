"""What the parts have brought so far: docs/bench-tuning.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.plan import PARTS, TRIALS, Setting
from stagegen.generate.write import write_file

FILE = Path("docs/bench-tuning.json")

#: A tuned call counts as slower than a native one below this speed-up.
SLOWER = 0.97


@dataclass(frozen=True)
class Row:
    """A call in a job: native against tuned.

    Attributes:
        collective: which one.
        size: in bytes.
        job: its ranks and hosts.
        routine: the algorithm that serves it.
        speedup: the native time over the tuned one.
        again: whether it is of other launches, as that of the first one was below :data:`SLOWER`.
    """

    collective: str
    size: int
    job: str
    routine: str
    speedup: float
    again: bool = False


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how many calls are slower than native ones, and each collective's slowest."""
    worst: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row.speedup):
        worst.setdefault(row.collective, row)
    return {
        "jobs": len({row.job for row in rows}),
        "compared": len(rows),
        "again": sum(row.again for row in rows),
        "slower": sum(row.speedup < SLOWER for row in rows),
        "slower_by": {
            name: sum(row.speedup < SLOWER for row in rows if row.collective == name)
            for name in sorted(worst)
        },
        "worst": {
            name: {"size": r.size, "job": r.job, "routine": r.routine, "speedup": r.speedup}
            for name, r in sorted(worst.items())
        },
    }


@dataclass(frozen=True)
class Result:
    """What one part has brought.

    Attributes:
        part: a key of :data:`docs.tools.bench_tuning.plan.PARTS` or of ``TRIALS`` there.
        source: the model, the lab, or this machine.
        cluster: its name.
        collectives: `all`, or a list.
        sizes: `default`, or a list.
        seed: of what is drawn.
        values: seconds, and losses as shares; the rows of a trial.
    """

    part: str
    source: str
    cluster: str
    collectives: str
    sizes: str
    seed: int
    values: Mapping[str, Any]

    @property
    def key(self) -> tuple[int, str, str, str, str, int]:
        """What tells results apart, and their order on the page: the lab's come first."""
        place = (*PARTS, *TRIALS).index(self.part)
        return place, self.source, self.cluster, self.collectives, self.sizes, self.seed


def result_of(setting: Setting, values: Mapping[str, Any]) -> Result:
    """Return the result of a setting, numbers with the digits that they are worth."""
    return Result(
        setting.part,
        setting.source,
        setting.topology.name,
        setting.names,
        setting.bytes,
        setting.seed,
        _rounded(dict(values)),
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 1 if abs(value) >= 100 else 4)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def read_results(path: Path = FILE) -> tuple[Result, ...]:
    """Return what the file has; nothing if it is not there."""
    if not path.exists():
        return ()
    return tuple(Result(**form) for form in json.loads(path.read_text(encoding="utf-8")))


def with_result(known: Iterable[Result], new: Result) -> tuple[Result, ...]:
    """Return results with a new one, which replaces an older one of the same setting."""
    by_key = {one.key: one for one in (*known, new)}
    return tuple(by_key[key] for key in sorted(by_key))


def write_results(found: Sequence[Result], path: Path = FILE) -> None:
    """Write the file."""
    forms = [vars(one) for one in found]
    write_file(path, json.dumps(forms, indent=1, ensure_ascii=False) + "\n")
