"""The launches that decide: the finalists of a size are timed anew in several jobs.

In each launch the finalists take turns, so what changes with the launch or with time hits all
alike. What is beyond doubt, or can no longer change the choice, is not timed again:

- A candidate is *beaten* if even its least time, scouting included, is above the median of a rival
  by :data:`BEATEN`. A hiccup can cause one long time, but not all of them.
- A challenger is *hopeless* if it could not pass the test against the native routine even with the
  best luck in the launches to come. That changes no decision.
- A challenger that is slower than the leader in two launches or more is *behind*: what replaces
  it is the better of two that both beat the native routine.

The error of the race: a challenger that is no faster than the native routine must be ahead in each
of five launches, which has a probability of at most 1 in 32, and its median gain must reach the
least gain besides.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as made

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import (
    LAUNCHES_LEAST,
    launch_ratios,
    may_be_faster,
    summarize,
)
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.protocol import Protocol
from stagegen.tune.race import (
    SCOUT_FACTOR,
    SHORT_SECONDS,
    Field,
    Sample,
    Times,
    decisive,
    in_random_order,
    least,
)

#: After so many launches a candidate is beaten if its least time is above a rival's median by this
#: factor; in scouting it had two calls before.
BEATEN = {1: 1.5, 2: 1.2}

#: The repetitions of each candidate that a launch adds at a time, by the seconds that a call takes
#: at the most.
CHUNKS = ((0.05, 5), (0.2, 3), (math.inf, 1))

#: The most repetitions of a candidate in all launches together.
REPETITIONS_MOST = 60


#: How many candidates of a group are finalists, by the seconds that a call takes at the most, and
#: within which factor of the best.
FINALISTS = ((0.1, 3), (1.0, 2), (math.inf, 1))
NEAR = 1.15


@dataclass
class Point:
    """What is known at one size.

    Attributes:
        field: the candidates that were scouted, and their groups.
        seen: what looks saw of each.
        tried: the times that rank them.
        finalists: the candidates that are timed in the launches that decide.
        holders: those of them that stay unless the difference counts: what may be chosen at the
            neighbouring sizes, and the native routine.
        raced: the times of each finalist, by launch.
        out: finalists that are no longer timed and cannot be chosen.
        launches: those that are done with this size.
    """

    field: Field
    seen: Times
    tried: Times
    finalists: tuple[Candidate, ...] = ()
    holders: frozenset[Candidate] = frozenset()
    raced: dict[Candidate, dict[int, list[float]]] = made(default_factory=dict)
    out: set[Candidate] = made(default_factory=set)
    launches: list[int] = made(default_factory=list)

    @property
    def running(self) -> tuple[Candidate, ...]:
        """The finalists that may still be chosen."""
        return tuple(candidate for candidate in self.finalists if candidate not in self.out)

    @property
    def fastest(self) -> float:
        """The least seconds that anything took."""
        return min(least(self.seen).values())

    def pooled(self, candidate: Candidate) -> list[float]:
        """Return the times of a finalist in all launches."""
        launches = self.raced.get(candidate, {})
        return [seconds for number in sorted(launches) for seconds in launches[number]]

    def median(self, candidate: Candidate) -> float:
        """Return the median seconds of a finalist."""
        return statistics.median(self.pooled(candidate))

    def samples(self) -> dict[Candidate, Sample]:
        """Return the sample of each candidate; before any launch, those of scouting."""
        return {candidate: self._sample(candidate) for candidate in self.seen}

    def _sample(self, candidate: Candidate) -> Sample:
        looks = tuple(self.seen[candidate])
        if not self.launches:
            return Sample(tuple(self.tried.get(candidate, looks)), candidate not in self.tried)
        if candidate not in self.raced:
            return Sample(tuple(self.tried.get(candidate, looks)), dropped=True)
        launches = {n: tuple(seconds) for n, seconds in sorted(self.raced[candidate].items())}
        pooled = tuple(self.pooled(candidate))
        return Sample(pooled, candidate in self.out, looks, launches)


def run_launch(
    source: Source, request: Request, point: Point, protocol: Protocol, cap: float
) -> None:
    """Time the finalists of a size in one launch, unless its choice is settled.

    Args:
        source: makes measurements, or has them from a log.
        request: for one look at candidates, in this launch.
        point: what is known of the size; learns more.
        protocol: how often, and what counts.
        cap: seconds of measured time after which no repetitions are added.
    """
    if is_settled(point, protocol):
        return
    running = point.running
    turn = in_random_order(replace(request, candidates=running), protocol.seed)
    turn = decisive(turn, point.fastest, _chunk(point.fastest, protocol))
    most = max(turn.repetitions, math.ceil(REPETITIONS_MOST / protocol.launches))
    spent, done = 0.0, 0
    allowed = protocol.width * math.sqrt(protocol.launches / (len(point.launches) + 1))
    while True:
        for candidate, seconds in source.measure(turn).by_candidate().items():
            launches = point.raced.setdefault(candidate, {})
            launches.setdefault(request.launch, []).extend(seconds)
            spent += (turn.calls + turn.settle) * sum(seconds)
        done += turn.repetitions
        intervals = [summarize(point.pooled(candidate)) for candidate in running]
        if spent >= cap or done >= most or all(one.width <= allowed for one in intervals):
            break
    point.launches.append(request.launch)
    _eliminate(point, protocol)


def _chunk(fastest: float, protocol: Protocol) -> int:
    """Return how many repetitions a launch adds at a time; few launches need more of them."""
    chunk = next(count for most, count in CHUNKS if fastest <= most)
    return max(chunk, math.ceil(LAUNCHES_LEAST / protocol.launches))


def is_settled(point: Point, protocol: Protocol) -> bool:
    """Whether further launches cannot change the choice of any group, or hardly its time."""
    if not point.launches:
        return len(point.running) <= 1
    return all(_is_settled(point, group, protocol) for group in point.field.groups)


def _is_settled(point: Point, group: frozenset[Candidate], protocol: Protocol) -> bool:
    running = [candidate for candidate in point.running if candidate in group]
    if len(running) <= 1:
        return True
    if NATIVE_CANDIDATE in running or len(point.launches) < 2:
        return False
    leader = min(running, key=point.median)
    return not any(
        _is_open(point, leader, holder, protocol)
        for holder in running
        if holder != leader and holder in point.holders
    )


def _is_open(point: Point, challenger: Candidate, holder: Candidate, protocol: Protocol) -> bool:
    """Whether launches to come may decide between two."""
    ratios = launch_ratios(point.raced[challenger], point.raced[holder])
    return may_be_faster(ratios, protocol.launches, protocol.gain)


def _eliminate(point: Point, protocol: Protocol) -> None:
    """Take out candidates that are beaten, hopeless or behind, the slowest first; one stays."""
    for candidate in sorted(point.running, key=point.median, reverse=True):
        rivals = {one: point.median(one) for one in point.running if one != candidate}
        beaten = _is_beaten(point, candidate, point.field.rival(rivals, candidate))
        challenges = candidate != NATIVE_CANDIDATE
        if beaten or (
            challenges
            and (
                _is_hopeless(point, candidate, protocol)
                or _is_behind(point, candidate, rivals, protocol)
            )
        ):
            point.out.add(candidate)


def _is_beaten(point: Point, candidate: Candidate, rival: float) -> bool:
    factor = BEATEN[min(len(point.launches), max(BEATEN))]
    return min(*point.seen[candidate], *point.pooled(candidate)) > factor * rival


def _is_hopeless(point: Point, candidate: Candidate, protocol: Protocol) -> bool:
    """Whether it can no longer be shown to be faster than the native routine."""
    if NATIVE_CANDIDATE not in point.running:
        return False
    return not _is_open(point, candidate, NATIVE_CANDIDATE, protocol)


def _is_behind(
    point: Point, candidate: Candidate, rivals: Mapping[Candidate, float], protocol: Protocol
) -> bool:
    """Whether a challenger lost to the leader in all of two launches or more, by what counts."""
    if candidate in point.holders or len(point.launches) < 2:
        return False
    inner = [group for group in point.field.groups if candidate in group][-1]
    others = [c for c in rivals if c in inner and c != NATIVE_CANDIDATE]
    if not others:
        return False
    leader = min(others, key=rivals.__getitem__)
    ratios = launch_ratios(point.raced[candidate], point.raced[leader])
    return min(ratios) > 1 and statistics.median(ratios) > 1 + protocol.gain


def name_finalists(point: Point, neighbours: Sequence[Candidate]) -> None:
    """Choose the finalists: the leaders of the groups, and what holds the nearby sizes.

    Args:
        point: what scouting saw.
        neighbours: what may be chosen at the neighbouring sizes.
    """
    short = point.fastest < SHORT_SECONDS
    scores = {c: statistics.median(s) if short else min(s) for c, s in point.tried.items()}
    most = next(count for limit, count in FINALISTS if point.fastest <= limit)
    leading = point.field.nearest(scores, NEAR, most)
    best = min(scores.values())
    holding = {c for c in neighbours if scores.get(c, math.inf) <= SCOUT_FACTOR * best}
    chosen = {*leading, *holding, NATIVE_CANDIDATE}
    point.finalists = tuple(candidate for candidate in point.seen if candidate in chosen)
    point.holders = frozenset({*holding, NATIVE_CANDIDATE})
