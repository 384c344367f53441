"""A race: time all candidates at one size, and go on only with those that may still win.

Rounds are interleaved (every candidate has its turn in every repetition), the first ones
only scout: they drop what is far behind, by the least time seen, so that one unlucky
repetition cannot drop a winner. All that decides is in the measurements, so a race on a log
runs as it ran live.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stagegen.measure.measurer import Source
from stagegen.measure.records import Candidate, Request
from stagegen.measure.statistics import summarize

#: A candidate whose least scouted time is above the best one's by more than these factors is
#: dropped: after one look where a call takes long, else after two looks.
FIRST_FACTOR, SECOND_FACTOR = 2.5, 1.4

#: Calls that take less than this many seconds are cheap enough for two looks at everybody.
CHEAP_SECONDS = 1.0

#: While deciding, who is above the best median by more than this factor is not measured again.
BEATEN_FACTOR = 1.2

#: Of those that are left in a group, so many go on.
FINALISTS = 4

#: Repetitions of the rounds that decide; later ones only while someone has not converged. Four
#: of each are the least that the test of :func:`stagegen.measure.statistics.is_faster` can pass.
ROUNDS = (4, 2, 4)

#: Calls that take longer than this many seconds are not preceded by an untimed one.
SETTLE_SECONDS = 2.0

#: A repetition lasts at least this many seconds, by more calls, up to CALLS_MOST.
REPETITION_SECONDS = 0.02
CALLS_MOST = 8


@dataclass(frozen=True)
class Sample:
    """What a race saw of one candidate.

    Attributes:
        seconds: repetitions that count for decisions; of a dropped candidate its scouting.
        dropped: whether it fell behind while scouting.
    """

    seconds: tuple[float, ...]
    dropped: bool = False


@dataclass(frozen=True)
class Field:
    """Who races, and who is needed to the end.

    Attributes:
        candidates: all.
        groups: sets of candidates with a winner each, such as all and the topology-unaware.
    """

    candidates: tuple[Candidate, ...]
    groups: tuple[frozenset[Candidate], ...]

    def survivors(
        self, times: Mapping[Candidate, float], factor: float, most: int
    ) -> list[Candidate]:
        """Return those within ``factor`` of the best of a group of theirs, ``most`` of each."""
        near: set[Candidate] = set()
        for group in self.groups:
            members = sorted((times[c], c) for c in times if c in group)
            near.update(c for time, c in members[:most] if time <= factor * members[0][0])
        return [candidate for candidate in times if candidate in near]


def race(
    source: Source, request: Request, field: Field, budget: float = math.inf
) -> dict[Candidate, Sample]:
    """Time the candidates of ``field`` against each other.

    Args:
        source: makes measurements, or has them from a log.
        request: for one repetition of one call of each.
        field: who races.
        budget: seconds of measured time after which no further round begins; the first
            deciding round always runs.
    """
    scouted = _scout(source, request, field)
    finalists = field.survivors(
        {candidate: min(seconds) for candidate, seconds in scouted.items()},
        SECOND_FACTOR,
        FINALISTS,
    )
    fastest = min(min(scouted[candidate]) for candidate in finalists)
    final = decisive(replace(request, candidates=tuple(finalists)), fastest, ROUNDS[0])
    decided = _decide(source, final, field, budget)
    return {
        candidate: Sample(tuple(decided[candidate]))
        if candidate in decided
        else Sample(tuple(scouted[candidate]), dropped=True)
        for candidate in field.candidates
    }


def contenders(source: Source, request: Request, field: Field) -> set[Candidate]:
    """Return the best of each group of ``field`` when everybody is looked at."""
    least = {
        candidate: min(seconds) for candidate, seconds in _scout(source, request, field).items()
    }
    return set(field.survivors(least, FIRST_FACTOR, FINALISTS))


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


def _scout(source: Source, request: Request, field: Field) -> dict[Candidate, list[float]]:
    """Look at everybody once or twice, the second time in the opposite order.

    Who comes before a candidate may leave traces in the network, so the least time counts.
    """
    times: dict[Candidate, list[float]] = {candidate: [] for candidate in field.candidates}
    _measure(source, request, times)
    least = {candidate: min(seconds) for candidate, seconds in times.items()}
    again = list(field.candidates)
    if min(least.values()) >= CHEAP_SECONDS:
        again = field.survivors(least, FIRST_FACTOR, len(least))
    _measure(source, replace(request, candidates=tuple(reversed(again))), times)
    return times


def _decide(
    source: Source, request: Request, field: Field, budget: float
) -> dict[Candidate, list[float]]:
    """Measure the finalists until they have converged, or the budget is spent."""
    times: dict[Candidate, list[float]] = {candidate: [] for candidate in request.candidates}
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


def _measure(
    source: Source, request: Request, times: dict[Candidate, list[float]]
) -> Sequence[float]:
    """Add a request's measurements to ``times``; return their seconds."""
    seconds: list[float] = []
    for candidate, repetitions in source.measure(request).by_candidate().items():
        times[candidate] += repetitions
        seconds += repetitions
    return seconds
