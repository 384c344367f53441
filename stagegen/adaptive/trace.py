"""Traces: what each call would take with each candidate; recorded, or made with a seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagegen.adaptive.policies import Entrant
from stagegen.catalogue.algorithm import Adaptation
from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.records import Measurement

Times = NDArray[np.float64]

VERSION = 1


@dataclass(frozen=True)
class Trace:
    """Per-call times of all candidates.

    Attributes:
        name: a title for people.
        collective: its name.
        size: bytes of a message.
        candidates: their names; the first is what the decision table chose.
        entrants: what a policy knows of each.
        mean_s: [candidate][call] the mean over the ranks, in seconds.
        max_s: likewise the maximum.
        meeting_s: seconds of a meeting of the ranks; 0 if it was not measured.
    """

    name: str
    collective: str
    size: int
    candidates: tuple[str, ...]
    entrants: tuple[Entrant, ...]
    mean_s: tuple[tuple[float, ...], ...]
    max_s: tuple[tuple[float, ...], ...]
    meeting_s: float = 0.0

    def __post_init__(self) -> None:
        count = len(self.candidates)
        if not count or any(len(x) != count for x in (self.entrants, self.mean_s, self.max_s)):
            raise ValueError("each candidate needs its facts and its times")
        if len({len(times) for times in (*self.mean_s, *self.max_s)}) != 1 or not self.calls:
            raise ValueError("all candidates need the times of as many calls, at least one")
        if not all(time >= 0 for times in (*self.mean_s, *self.max_s) for time in times):
            raise ValueError("times must be 0 or more")

    @property
    def calls(self) -> int:
        """How many calls there are."""
        return len(self.mean_s[0])

    def only_grouped(self) -> Trace:
        """Return the trace of the candidates with a group; of all, if none has one."""
        kept = [i for i, one in enumerate(self.entrants) if one.group > 0]
        if not kept:
            return self
        return replace(
            self,
            candidates=tuple(self.candidates[i] for i in kept),
            entrants=tuple(self.entrants[i] for i in kept),
            mean_s=tuple(self.mean_s[i] for i in kept),
            max_s=tuple(self.max_s[i] for i in kept),
        )

    def with_adaptations(self, marks: Mapping[str, Adaptation]) -> Trace:
        """Return the trace with the groups of algorithms that the front matter marks.

        Args:
            marks: by the algorithm's name; a mark counts only up to its ``max_bytes``, and only if
                it is not for hosts that are unknown.
        """
        found = (marks.get(name.partition(":")[0]) for name in self.candidates)
        kept = (
            mark
            if mark and not mark.without_hosts and (mark.max_bytes or self.size) >= self.size
            else None
            for mark in found
        )
        entrants = tuple(
            replace(one, group=mark.group, is_representative=mark.representative) if mark else one
            for one, mark in zip(self.entrants, kept, strict=True)
        )
        return replace(self, entrants=entrants)

    def as_tuned(self) -> Trace:
        """Return the trace with the candidate of the least known time as the table's choice."""
        best = min(range(len(self.candidates)), key=lambda i: self.entrants[i].known_s)
        order = [best, *(i for i in range(len(self.candidates)) if i != best)]
        return replace(
            self,
            candidates=tuple(self.candidates[i] for i in order),
            entrants=tuple(self.entrants[i] for i in order),
            mean_s=tuple(self.mean_s[i] for i in order),
            max_s=tuple(self.max_s[i] for i in order),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the content of a trace file."""
        return {
            "version": VERSION,
            "name": self.name,
            "collective": self.collective,
            "size": self.size,
            "meeting_s": self.meeting_s,
            "candidates": [
                {
                    "candidate": name,
                    "known_s": one.known_s or None,
                    "group": one.group,
                    "is_representative": one.is_representative,
                    "is_native": one.is_native,
                    "mean_s": list(mean),
                    "max_s": list(most),
                }
                for name, one, mean, most in zip(
                    self.candidates, self.entrants, self.mean_s, self.max_s, strict=True
                )
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trace:
        """Read the content of a trace file.

        Raises:
            KeyError, TypeError, ValueError: the data is no trace.
        """
        if data["version"] != VERSION:
            raise ValueError(f"its version is {data['version']}, and {VERSION} is needed")
        rows = data["candidates"]
        return cls(
            str(data["name"]),
            str(data["collective"]),
            int(data["size"]),
            tuple(str(row["candidate"]) for row in rows),
            tuple(
                Entrant(
                    float(row["known_s"] or 0),
                    int(row["group"]),
                    bool(row["is_representative"]),
                    bool(row["is_native"]),
                )
                for row in rows
            ),
            tuple(tuple(map(float, row["mean_s"])) for row in rows),
            tuple(tuple(map(float, row["max_s"])) for row in rows),
            float(data["meeting_s"]),
        )


def read_trace(file: Path) -> Trace:
    """Read a trace file.

    Raises:
        InputError: it cannot be read, or is no trace.
    """
    try:
        return Trace.from_json(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file) from error
    except (KeyError, TypeError, ValueError) as error:
        advice = "make it again with `stagegen adapt trace`"
        raise InputError(f"is no trace: {what_is_wrong(error)}; {advice}", file) from error


def trace_of_measurements(
    measurements: Iterable[Measurement],
    name: str,
    *,
    chosen: str | None = None,
    limit: int | None = None,
) -> Trace:
    """Return the trace of candidates that were timed in turn, each repetition as one call.

    A log has one metric, so mean and maximum are the same. What is known of a candidate is the
    median of the first fifth of its calls, which are left out of the trace.

    Args:
        measurements: of one collective, size and communicator; all with the same candidates.
        name: of the trace.
        chosen: the candidate that the decision table chose; the native routine if None.
        limit: the most calls of the trace; None if there is no limit.

    Raises:
        InputError: there are none, they differ, or have too few repetitions.
    """
    found = list(measurements)
    subjects = {(m.request.collective, m.request.size, m.request.communicator) for m in found}
    sets = [set(m.request.candidates) for m in found]
    if len(subjects) != 1:
        problem = f"a trace is of one collective, size and communicator, not of {len(subjects)}"
        raise InputError(f"{problem}; choose one of them")
    common = sorted(set.intersection(*sets))
    times = {c: [s for m in found for s in m.by_candidate()[c]] for c in common}
    count = min((len(row) for row in times.values()), default=0)
    before = count // 5
    if before < 1:
        problem = f"a trace needs at least 5 repetitions of each candidate, not {count}"
        raise InputError(f"{problem}; measure with more")
    first = chosen or "native"
    order = sorted(common, key=lambda c: (c.spec != first, c.algorithm != "native", c.spec))
    if not order or order[0].spec != first:
        specs = ", ".join(candidate.spec for candidate in order)
        raise InputError(f"{first} was not measured with the others; choose from {specs}")
    rows = tuple(tuple(times[c][before:count][:limit]) for c in order)
    (collective, size, _) = next(iter(subjects))
    return Trace(
        name,
        collective,
        size,
        tuple(c.spec for c in order),
        tuple(
            Entrant(float(np.median(times[c][:before])), 0, False, c.algorithm == "native")
            for c in order
        ),
        rows,
        rows,
    )


def _stationary(random: np.random.Generator, base: Times, calls: int) -> Times:
    """Lognormal noise of 5 %."""
    return base[:, None] * random.lognormal(0, 0.05, (len(base), calls))


def _drifting(random: np.random.Generator, base: Times, calls: int) -> Times:
    """The order of the candidates turns round half-way."""
    times = _stationary(random, base, calls)
    times[:, calls // 2 :] *= (base[::-1] / base)[:, None]
    return times


def _bursty(random: np.random.Generator, base: Times, calls: int) -> Times:
    """Now and then all calls take three times as long, for some 20 calls."""
    times = _stationary(random, base, calls)
    for begin in np.flatnonzero(random.random(calls) < 0.005):
        times[:, begin : begin + int(random.integers(10, 30))] *= 3
    return times


def _heavy_tail(random: np.random.Generator, base: Times, calls: int) -> Times:
    """One call in 50 is longer by a Pareto factor, as after a lost frame."""
    times = _stationary(random, base, calls)
    lost = random.random(times.shape) < 0.02
    return times * np.where(lost, 1 + random.pareto(1.5, times.shape), 1)


def _degraded(random: np.random.Generator, base: Times, calls: int) -> Times:
    """The fastest candidate takes twice as long in the middle half of the calls."""
    times = _stationary(random, base, calls)
    times[int(base.argmin()), calls // 4 : 3 * calls // 4] *= 2
    return times


def _late(random: np.random.Generator, base: Times, calls: int) -> Times:
    """Each of 8 processes is late by up to 20 ms in each call, and all wait for the last one."""
    late = random.uniform(0, 0.020, (8, calls))
    wait: Times = late.max(axis=0) - late.mean(axis=0)
    return _stationary(random, base, calls) + wait


#: What the times of a synthetic trace do from call to call, by name.
COURSES: dict[str, Callable[[np.random.Generator, Times, int], Times]] = {
    "stationary": _stationary,
    "drifting": _drifting,
    "bursty": _bursty,
    "heavy-tail": _heavy_tail,
    "degraded": _degraded,
    "late": _late,
}

#: The source's sets (§4.3.1.1, §4.3.1.3): how many algorithms are in each group. Alltoall's group 2
#: is for messages of at most 256 bytes.
SOURCE_GROUPS: dict[str, tuple[int, ...]] = {
    "alltoall": (1, 4, 2, 2, 2, 2),
    "allgather": (1, 4, 2, 2, 2, 1),
    "allreduce": (5, 9, 6),
}
_SMALL = 256


def source_entrants(collective: str, size: int) -> tuple[Entrant, ...]:
    """Return the source's candidates for a message of some bytes, with their groups.

    Raises:
        InputError: the source has no set for the collective.
    """
    if collective not in SOURCE_GROUPS:
        known = ", ".join(SOURCE_GROUPS)
        raise InputError(f"there is no source set for {collective}; choose from {known}")
    return tuple(
        Entrant(group=group, is_representative=first == 0)
        for group, count in enumerate(SOURCE_GROUPS[collective], start=1)
        if not (collective == "alltoall" and group == 2 and size > _SMALL)
        for first in range(count)
    )


def synthetic(
    course: str, *, calls: int = 2000, seed: int = 1, collective: str = "alltoall", size: int = 2048
) -> Trace:
    """Return a synthetic trace: the source's set of candidates, from 10 ms to 40 ms a call.

    What is known of each is its base time with an error of 5 %. The table's choice is what is known
    to be the fastest; it comes first. One more candidate is the native routine.

    Args:
        course: a key of :data:`COURSES`.
        calls: of each candidate.
        seed: equal seeds make equal traces.
        collective: whose set and groups to take.
        size: bytes of a message.

    Raises:
        InputError: there is no such course or set.
    """
    if course not in COURSES:
        raise InputError(f"there is no course {course}; choose from {', '.join(COURSES)}")
    random = np.random.default_rng(seed)
    entrants = source_entrants(collective, size)
    groups = {one.group for one in entrants}
    level = {group: float(random.uniform(1.0, 2.5)) for group in sorted(groups)}
    own = [0.010 * level[one.group] * random.uniform(1.0, 1.6) for one in entrants]
    base = np.array([*own, 0.010 * random.uniform(1.0, 2.5)])
    known = base * random.lognormal(0, 0.05, len(base))
    facts: Sequence[Entrant] = [
        *(replace(one, known_s=float(k)) for one, k in zip(entrants, known, strict=False)),
        Entrant(float(known[-1]), 0, False, True),
    ]
    names = [*(f"group{one.group}_{i}" for i, one in enumerate(entrants)), "native"]
    mean = COURSES[course](random, base, calls)
    slowest = mean * random.lognormal(0.1, 0.02, mean.shape)
    first = int(known.argmin())
    order = [first, *(i for i in range(len(base)) if i != first)]
    return Trace(
        f"{course}-{seed}",
        collective,
        size,
        tuple(names[i] for i in order),
        tuple(facts[i] for i in order),
        tuple(tuple(map(float, mean[i])) for i in order),
        tuple(tuple(map(float, np.maximum(mean, slowest)[i])) for i in order),
    )
