"""What a program learned: the files of ``LIBCOLL_LEARN`` (docs/schemas/learned.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from stagegen.adaptive.replay import Overheads, overheads
from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.records import Candidate

#: The stages at the beginning of a situation that learned.c always keeps.
FIRST = 96


@dataclass(frozen=True)
class LearnedStage:
    """Some calls of one candidate in turn.

    Attributes:
        candidate: its number in the situation.
        calls: how many there were.
        is_monitoring: whether the stage watched a choice; otherwise it was part of the search.
        mean_s: of each call the mean over the ranks, in seconds; empty if there was no room.
        max_s: likewise the maximum.
        skew_s: how far apart the ranks came, in seconds: the mean over its calls of the largest
            time of a rank less the least.
        decision: what was decided after it, in words.
    """

    candidate: int
    calls: int
    is_monitoring: bool
    mean_s: tuple[float, ...]
    max_s: tuple[float, ...]
    skew_s: float
    decision: str


@dataclass(frozen=True)
class Situation:
    """A call site, collective, message size and communicator, and what was learned of it.

    Attributes:
        collective, size, communicator, ranks, hosts: as in a decision table; hosts is None if not
            known.
        number: of the communicator, in the process that wrote.
        site: of the calls; None if all sites are one.
        calls: of the situation.
        meetings_s: seconds of all meetings and decisions.
        selected_after: calls until the first monitoring period; None if there was none.
        current: the candidate that served in the end: of the latest monitoring period, if there was
            one.
        candidates: that competed; the first is what the table chose, unless the policy asked for
            the source's sets.
        known_s: what tuning measured of each; 0: nothing.
        stages: the first and the latest ones.
        left_out: stages between them.
        decided_by: which times the policy heard: the "mean" over the ranks, or the "max".
        is_paused: whether it stopped before its policy was done, as call sites were told apart.
        search_s: seconds of the meetings until a candidate was selected; None if an earlier
            library wrote the file.
    """

    collective: str
    size: int
    communicator: str
    ranks: int
    hosts: int | None
    number: int
    site: str | None
    calls: int
    meetings_s: float
    selected_after: int | None
    current: int
    candidates: tuple[Candidate, ...]
    known_s: tuple[float, ...]
    stages: tuple[LearnedStage, ...]
    left_out: int
    decided_by: str = "mean"
    is_paused: bool = False
    search_s: float | None = None

    @property
    def title(self) -> str:
        """What people call it."""
        site = "" if self.site is None else f" at {self.site}"
        return f"{self.collective} {self.size} B, {self.ranks} ranks #{self.number}{site}"

    def times_of(self, candidate: int) -> tuple[float, ...]:
        """Return the kept times of a candidate's calls that the policy heard, in seconds."""
        if self.decided_by == "max":
            return self._maxima_of(candidate)
        return tuple(t for one in self.stages if one.candidate == candidate for t in one.mean_s)

    @cached_property
    def medians(self) -> Mapping[int, float]:
        """The median of the kept times of each candidate that was tried, in seconds."""
        kept = {i: self.times_of(i) for i in range(len(self.candidates))}
        return {i: median(times) for i, times in kept.items() if times}

    @cached_property
    def means(self) -> Mapping[int, float]:
        """As :attr:`medians`, of each call's mean over the ranks, whatever decides."""
        kept = {
            i: [t for one in self.stages if one.candidate == i for t in one.mean_s]
            for i in range(len(self.candidates))
        }
        return {i: median(times) for i, times in kept.items() if times}

    @cached_property
    def longest(self) -> Mapping[int, float]:
        """As :attr:`medians`, of each call's maximum over the ranks."""
        kept = {i: self._maxima_of(i) for i in range(len(self.candidates))}
        return {i: median(times) for i, times in kept.items() if times}

    def _maxima_of(self, candidate: int) -> tuple[float, ...]:
        return tuple(t for one in self.stages if one.candidate == candidate for t in one.max_s)

    def skew_of(self, candidate: int) -> float | None:
        """Return how far apart the ranks came, the mean over a candidate's calls; None: not tried.

        In seconds. Only kept stages count, each by its calls.
        """
        stages = [one for one in self.stages if one.candidate == candidate]
        if not stages:
            return None
        return sum(one.calls * one.skew_s for one in stages) / sum(one.calls for one in stages)

    def overheads(self) -> Overheads | None:
        """Return what selection cost (Table 4.19), or None if no times were kept.

        The best candidate is the one with the least median. If it is not known which meetings took
        how long, all cost the same.
        """
        if not self.medians:
            return None
        searching = next((i for i, one in enumerate(self.stages) if one.is_monitoring), None)
        before = len(self.stages) if searching is None else searching
        share = before / (len(self.stages) + self.left_out)
        search_s = share * self.meetings_s if self.search_s is None else self.search_s
        after = self.calls - sum(one.calls for one in self.stages[:before])
        watch_s = (self.meetings_s - search_s) / after if after else 0.0
        stages = [
            (one.is_monitoring, one.max_s if self.decided_by == "max" else one.mean_s)
            for one in self.stages
            if one.mean_s
        ]
        found = overheads(stages, min(self.medians.values()), search_s, watch_s)
        return replace(found, selected_after=self.selected_after)

    def changes(self) -> Iterator[tuple[int, int, str]]:
        """Yield (call, candidate, why) where another candidate began to serve in the kept stages.

        The first one has no reason that was written.
        """
        missing = self.calls - sum(one.calls for one in self.stages)
        call, why, before = 0, "", -1
        for number, stage in enumerate(self.stages):
            if number == FIRST and self.left_out:
                call += missing
            if stage.candidate != before:
                yield call, stage.candidate, why
            call, why, before = call + stage.calls, stage.decision, stage.candidate


@dataclass(frozen=True)
class Learned:
    """A learned file.

    Attributes:
        file: its name, without folders.
        cluster, topology_hash: of the library.
        build_hash: of the library, or None if it did not know it.
        policy: that decided.
        situations: in the file's order.
        left_out: situations for which there was no room.
    """

    file: str
    cluster: str
    topology_hash: str
    build_hash: str | None
    policy: str
    situations: tuple[Situation, ...]
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of ``stagegen adapt report``."""
        return {
            "file": self.file,
            "cluster": self.cluster,
            "topology_hash": self.topology_hash,
            "policy": self.policy,
            "left_out": self.left_out,
            "situations": [_situation_json(one) for one in self.situations],
        }


def _situation_json(one: Situation) -> dict[str, Any]:
    costs = one.overheads()
    return {
        "collective": one.collective,
        "bytes": one.size,
        "communicator": one.communicator,
        "ranks": one.ranks,
        "number": one.number,
        "site": one.site,
        "calls": one.calls,
        "chosen": one.candidates[one.current].spec,
        "tried": [
            {
                "candidate": one.candidates[i].spec,
                "calls": sum(s.calls for s in one.stages if s.candidate == i),
                "median_s": one.means.get(i),
                "max_s": one.longest.get(i),
                "skew_s": one.skew_of(i),
                "known_s": one.known_s[i] or None,
            }
            for i in sorted({stage.candidate for stage in one.stages})
        ],
        "changes": [
            {"call": call, "candidate": one.candidates[i].spec, "why": why}
            for call, i, why in one.changes()
        ],
        "overheads": None if costs is None else costs.to_json(),
        "stages_left_out": one.left_out,
    }


def _stage(data: Mapping[str, Any], candidates: int) -> LearnedStage:
    mean, most = (tuple(map(float, data[name])) for name in ("mean_s", "max_s"))
    number, calls = int(data["candidate"]), int(data["calls"])
    if not 0 <= number < candidates or calls < 1 or len(mean) != len(most):
        raise ValueError("a stage has a candidate of the situation, calls, and as many times")
    return LearnedStage(
        number,
        calls,
        bool(data["is_monitoring"]),
        mean,
        most,
        float(data["skew_s"]),
        str(data["decision"]),
    )


def _candidate(data: Mapping[str, Any]) -> Candidate:
    return Candidate(data["algorithm"], tuple(sorted(data["parameters"].items())))


def _situation(data: Mapping[str, Any]) -> Situation:
    rows = data["candidates"]
    current = int(data["current"])
    if not 0 <= current < len(rows):
        raise ValueError("`current` does not name a candidate")
    return Situation(
        str(data["collective"]),
        int(data["bytes"]),
        str(data["communicator"]),
        int(data["ranks"]),
        int(data["hosts"]) if data["hosts"] else None,
        int(data["number"]),
        data["site"],
        int(data["calls"]),
        float(data["meetings_s"]),
        data["selected_after"],
        current,
        tuple(map(_candidate, rows)),
        tuple(float(row["known_s"] or 0) for row in rows),
        tuple(_stage(one, len(rows)) for one in data["stages"]),
        int(data["stages_left_out"]),
        str(data.get("decided_by", "mean")),
        bool(data.get("is_paused", False)),
        float(data["search_s"]) if "search_s" in data else None,
    )


def read_learned(file: Path) -> Learned:
    """Read a learned file.

    Raises:
        InputError: the file cannot be read, or is no learned file.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != 1:
            raise ValueError(f"its version is {data['version']}, and 1 is needed")
        return Learned(
            file.name,
            str(data["cluster"]),
            str(data["topology_hash"]),
            data.get("build_hash"),
            str(data["policy"]),
            tuple(map(_situation, data["situations"])),
            int(data["left_out"]),
        )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"is no file of LIBCOLL_LEARN: {what_is_wrong(error)}"
        advice = "let the program write it again, with a library of this stagegen"
        raise InputError(f"{problem}; {advice}", file) from error
