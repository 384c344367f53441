"""A race: time all candidates at one size, and go on only with those that may still win.

Rounds are interleaved (every candidate has its turn in every repetition). The first ones only
scout: they drop candidates that are far behind by their least time, so that one unlucky
repetition cannot drop a winner. Only the measurements decide, so a race on a log runs as it ran
live.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import summarize

#: A candidate whose least scouted time is above the best one's by more than this factor is
#: dropped: after one look if bad luck cannot explain it, else after two.
SCOUT_FACTOR = 1.3

#: A lost packet can cost a call this many seconds (the least time until TCP sends it again, and
#: some more), so a candidate that is behind by less gets the second look.
HICCUP_SECONDS = 0.3

#: A candidate above the best one by more than this factor keeps the parameters that it has;
#: so do all but the first few of a group.
NEAR_FACTOR = 2.5
NEAREST = 3

#: While deciding, a candidate above the best median by more than this factor is not measured again.
BEATEN_FACTOR = 1.2

#: The most candidates of a group that go on. Two looks tell equals apart only by luck, above all
#: with bbr, where a call depends on the one before; a winner must not need luck to get here.
FINALISTS = 5

#: Repetitions of the rounds that decide; later ones run only while a candidate has not converged.
#: The test of :func:`stagegen.measure.statistics.is_faster` needs at least four of each.
ROUNDS = (4, 2, 4)

#: No untimed call precedes calls that take longer than this many seconds: they soon bring the
#: network into their own state, and the untimed call would take as long again.
SETTLE_SECONDS = 0.1

#: A repetition has enough calls to last this many seconds, but at most CALLS_MOST.
REPETITION_SECONDS = 0.02
CALLS_MOST = 8


@dataclass(frozen=True)
class Sample:
    """The times of one candidate in a race.

    Attributes:
        seconds: of the repetitions that count for decisions; if dropped, of its scouting.
        dropped: whether it fell behind while scouting.
    """

    seconds: tuple[float, ...]
    dropped: bool = False


@dataclass(frozen=True)
class Field:
    """The candidates of a race, and the groups that each need a winner.

    Attributes:
        candidates: all of them.
        groups: sets of candidates with a winner each, such as all and the topology-unaware.
    """

    candidates: tuple[Candidate, ...]
    groups: tuple[frozenset[Candidate], ...]

    def survivors(
        self, times: Mapping[Candidate, float], factor: float, most: int
    ) -> list[Candidate]:
        """Return the candidates within ``factor`` of a group's best, at most ``most`` of each."""
        near: set[Candidate] = set()
        for group in self.groups:
            members = sorted((times[c], c) for c in times if c in group)
            near.update(c for time, c in members[:most] if time <= factor * members[0][0])
        return [candidate for candidate in times if candidate in near]


#: The measured seconds of each candidate.
Times = dict[Candidate, list[float]]


def race(
    source: Source, request: Request, field: Field, budget: float = math.inf
) -> dict[Candidate, Sample]:
    """Time the candidates of ``field`` against each other.

    Args:
        source: makes measurements, or has them from a log.
        request: for one repetition of one call of each.
        field: the candidates.
        budget: seconds of measured time after which no further round begins; the first
            deciding round always runs.
    """
    return finish(source, request, field, look(source, request, field), budget)


def finish(
    source: Source, request: Request, field: Field, seen: Times, budget: float
) -> dict[Candidate, Sample]:
    """Time the candidates that may still win against each other, after a look at all."""
    finalists = field.survivors(_least(seen), SCOUT_FACTOR, FINALISTS)
    fastest = min(min(seen[candidate]) for candidate in finalists)
    final = decisive(replace(request, candidates=tuple(finalists)), fastest, ROUNDS[0])
    decided = _decide(source, final, field, budget)
    return {
        candidate: Sample(tuple(decided[candidate]))
        if candidate in decided
        else Sample(tuple(seen[candidate]), dropped=True)
        for candidate in field.candidates
    }


def near(field: Field, seen: Times) -> set[Candidate]:
    """Return the best candidates of each group of ``field`` after a look at all."""
    return set(field.survivors(_least(seen), NEAR_FACTOR, NEAREST))


def _least(seen: Times) -> dict[Candidate, float]:
    return {candidate: min(seconds) for candidate, seconds in seen.items()}


def decisive(scout: Request, fastest: float, repetitions: int) -> Request:
    """Return the request that decides, after a scout whose fastest call took ``fastest`` s."""
    return replace(
        scout,
        settle=fastest < SETTLE_SECONDS,
        calls=calls_per_repetition(fastest),
        repetitions=repetitions,
    )


def calls_per_repetition(seconds: float) -> int:
    """Return how many calls make a repetition long enough, if one takes ``seconds``."""
    return max(1, min(CALLS_MOST, math.ceil(REPETITION_SECONDS / max(seconds, 1e-9))))


def look(
    source: Source, request: Request, field: Field, behind: Container[Candidate] = ()
) -> Times:
    """Time every candidate once, then those that may still win again, in the opposite order.

    A call may leave traces in the network for the next one, so the least time counts.

    Args:
        source: makes measurements, or has them from a log.
        request: for one repetition of one call of each.
        field: the candidates to look at.
        behind: candidates that were behind at another size; one look drops them if they still are.
    """
    times: Times = {candidate: [] for candidate in field.candidates}
    _measure(source, request, times)
    least = _least(times)
    again: set[Candidate] = set()
    for group in field.groups:
        best = min(least[candidate] for candidate in group)
        most = max(SCOUT_FACTOR * best, best + HICCUP_SECONDS)
        again.update(
            candidate
            for candidate in group
            if least[candidate] <= (SCOUT_FACTOR * best if candidate in behind else most)
        )
    second = tuple(candidate for candidate in reversed(field.candidates) if candidate in again)
    _measure(source, replace(request, candidates=second), times)
    return times


def _decide(source: Source, request: Request, field: Field, budget: float) -> Times:
    """Measure the finalists until they have converged, or the budget is spent."""
    times: Times = {candidate: [] for candidate in request.candidates}
    running = list(request.candidates)
    spent = 0.0
    for repetitions in ROUNDS:
        turn = replace(request, repetitions=repetitions, candidates=tuple(running))
        spent += request.calls * sum(_measure(source, turn, times))
        medians = {candidate: statistics.median(times[candidate]) for candidate in running}
        running = field.survivors(medians, BEATEN_FACTOR, len(medians))
        if spent > budget or all(summarize(times[c]).converged for c in running):
            break
    return times


def _measure(source: Source, request: Request, times: Times) -> Sequence[float]:
    """Add a request's measurements to ``times``; return their seconds."""
    seconds: list[float] = []
    for candidate, repetitions in source.measure(request).by_candidate().items():
        times[candidate] += repetitions
        seconds += repetitions
    return seconds
