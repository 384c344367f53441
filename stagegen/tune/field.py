"""What a race is about: its candidates and groups, and what is known of the time of each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import summarize

#: Calls that take longer than this many seconds are dear. Then time is spent for the first group,
#: the table of the ranks that are measured. Other tables get what is known of their candidates.
DEAR_SECONDS = 1.0

#: Beside calls longer than this many seconds, noise and hiccups are small.
LONG_SECONDS = 0.15

#: A lost packet can cost a call this many seconds: the least time until TCP sends it again, and
#: some more.
HICCUP_SECONDS = 0.3

#: The measured seconds of each candidate.
Times = dict[Candidate, list[float]]


@dataclass(frozen=True)
class Sample:
    """The times of one candidate at a size.

    Attributes:
        seconds: of the repetitions that count for decisions; if there are none, of scouting.
        dropped: whether it fell behind and can no longer be chosen.
        scouted: the times of scouting, unless ``seconds`` are these.
        launches: ``seconds`` by the launch that made them; empty after scouting alone.
        rank: the least seconds of scouting, by which challengers of the native routine were
            ranked; infinite if unknown.
    """

    seconds: tuple[float, ...]
    dropped: bool = False
    scouted: tuple[float, ...] = ()
    launches: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    rank: float = float("inf")

    @property
    def mean(self) -> float:
        """The mean of the repetitions that count for decisions, in seconds.

        It is the median of the means of the launches: one lost frame can be most of a launch's
        mean, and may happen to every routine.
        """
        launches = [statistics.fmean(seconds) for seconds in self.launches.values()]
        return statistics.median(launches) if launches else statistics.fmean(self.seconds)

    def is_known(self, width: float) -> bool:
        """Whether the 95 % interval of the median is within this share of it."""
        return summarize(self.seconds).is_within(width)


@dataclass(frozen=True)
class Field:
    """The candidates of a race, and the groups that each need a winner.

    Attributes:
        candidates: all of them.
        groups: sets of candidates with a winner each, each set within the one before, such as all
            and the topology-unaware.
        tabled: those with tables of the measured ranks or of their pattern.
        own: those that were made for just this: for the ranks' pattern, or by a user.
    """

    candidates: tuple[Candidate, ...]
    groups: tuple[frozenset[Candidate], ...]
    tabled: frozenset[Candidate] = frozenset()
    own: frozenset[Candidate] = frozenset()

    @property
    def scheduled(self) -> frozenset[Candidate]:
        """The candidates of the first group alone, or with tables if there is no other group."""
        first, *inner = self.groups
        return first.difference(*inner) if inner else first & self.tabled

    @property
    def ordered(self) -> frozenset[Candidate]:
        """Of a pattern, the candidates with an order of its own messages; else all scheduled."""
        return self.scheduled & self.own or self.scheduled

    def nearest(
        self, times: Mapping[Candidate, float], factor: float, most: int
    ) -> list[Candidate]:
        """Return the candidates within ``factor`` of a group's best, at most ``most`` of each."""
        near: set[Candidate] = set()
        for group in self.groups:
            members = sorted((times[c], c) for c in times if c in group)
            for time, candidate in members[:most]:
                # An infinite factor of a time of 0 is no number.
                if factor == float("inf") or time <= factor * members[0][0]:
                    near.add(candidate)
        return [candidate for candidate in times if candidate in near]

    def without_dear(self, times: Mapping[Candidate, float]) -> Field:
        """Return the race without the inner groups whose best known time is above DEAR_SECONDS.

        The first group, which holds all, stays.
        """
        first, *inner = self.groups

        def best(group: frozenset[Candidate]) -> float:
            return min((times[c] for c in group if c in times), default=0.0)

        left = tuple(g for g in inner if best(g) <= DEAR_SECONDS)
        return Field(self.candidates, (first, *left), self.tabled, self.own)

    def leaders(self, times: Mapping[Candidate, float]) -> list[Candidate]:
        """Return the best candidate of each group, among those that have a time."""
        members = ([(times[c], c) for c in group if c in times] for group in self.groups)
        return [min(timed)[1] for timed in members if timed]

    def rival(self, times: Mapping[Candidate, float], candidate: Candidate) -> float:
        """Return the best time of the smallest group that holds a candidate, or infinity.

        A candidate slower than this one is slower than the best of all groups that hold it.
        """
        inner = [group for group in self.groups if candidate in group][-1]
        return min((time for c, time in times.items() if c in inner), default=float("inf"))


def least(times: Mapping[Candidate, Sequence[float]]) -> dict[Candidate, float]:
    """Return the least time of each candidate."""
    return {candidate: min(seconds) for candidate, seconds in times.items()}


def best_of_algorithms(times: Mapping[Candidate, float]) -> dict[str, float]:
    """Return the least seconds of each algorithm's candidates, by its name."""
    found: dict[str, float] = {}
    for candidate, seconds in times.items():
        found[candidate.algorithm] = min(found.get(candidate.algorithm, seconds), seconds)
    return found


def distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates, each once, in their order."""
    return tuple(dict.fromkeys(candidates))
