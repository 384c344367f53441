"""Scouting: time all candidates of a size in one launch, few times, to find those that may win.

A candidate is not timed if its predicted time, less the error of predictions, is above the best one
seen (:mod:`stagegen.tune.prediction`). Looks come twice, as one unlucky call must not drop a
winner. Scouting decides which candidates are timed in the launches to come
(:mod:`stagegen.tune.launches`). It counts for no choice, except for looks at dear calls that
confirm a prediction (:attr:`stagegen.tune.point.Point.named`). Only measurements decide, so a
search on a log runs as it ran live.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import MARGIN
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import (
    DEAR_SECONDS,
    HICCUP_SECONDS,
    LONG_SECONDS,
    Field,
    Times,
    distinct,
    least,
)
from stagegen.tune.prediction import Prediction

#: A candidate whose least scouted time is above the best one's by more than this factor is
#: dropped: after one look if it is behind by more than a hiccup, else after two.
SCOUT_FACTOR = 1.3

#: The most candidates of a group that are looked at, by the longest time in seconds that a call is
#: expected to take. Where calls are long, only the best predictions get a look. The limit is STALE
#: times lower for candidates that the last size did not see: their predictions are guesses.
LOOKED_AT = ((0.1, 1000), (1.0, 4), (float("inf"), 1))
STALE = 4

#: The same where a call is mostly the wait for late ranks. What smaller sizes tell is less certain
#: there: how long ranks wait for each other grows with the size, too.
LOOKED_AT_IF_LATE = ((0.1, 1000), (2.0, 4), (float("inf"), 2))

#: This many more are looked at if the best one takes longer than predicted: others may be better.
SURPRISED = 2

#: A look goes on as long as candidates without a look may be faster than the best one by this
#: factor, by their predictions less the error. It goes on MORE_LOOKS times at most, each time with
#: MORE_AT_A_TIME candidates of a group. Where calls are longer than DEAR_SECONDS, it goes on with
#: one candidate of a group at a time, until the whole look has taken MORE_SECONDS.
WORTH_MORE = 1.25
MORE_LOOKS, MORE_AT_A_TIME = 3, 4
MORE_SECONDS = 60.0

#: The most candidates of a group that get a second look, by the seconds that a call takes at the
#: most: beside a call of seconds, a hiccup is small.
AGAIN = ((0.1, 1000), (1.0, 2), (float("inf"), 0))

#: A candidate above the best one by more than this factor keeps the parameters that it has;
#: so do all but the first few of a group.
NEAR_FACTOR = 1.5
NEAREST = 3

#: How many candidates are in a part of a look if ranks come late.
LATE_TOGETHER = 4

#: Two looks rank calls shorter than this many seconds only by luck. The best ones, up to TRIED of
#: each group, have a trial of TRIAL repetitions. If a look took less than the candidate's next one
#: by the factor LUCKY, it may be luck, or the other one a hiccup. So the best ones without such
#: looks have a trial, too.
SHORT_SECONDS = 0.05
TRIED = 4
TRIAL = 3
LUCKY = 1.5

#: No untimed call precedes calls that take longer than this many seconds: they soon bring the
#: network into their own state, and the untimed call would take as long again.
SETTLE_SECONDS = 0.05


def in_random_order(request: Request, seed: int) -> Request:
    """Return the request with its candidates in an order that only it and the seed decide."""
    candidates = list(request.candidates)
    place = f"{request.collective} {request.communicator} {request.size} {request.launch}"
    random.Random(f"{seed} {place} {[c.spec for c in candidates]}").shuffle(candidates)
    return replace(request, candidates=tuple(candidates))


def decisive(scout: Request, fastest: float, repetitions: int) -> Request:
    """Return the request that decides, after a scout whose fastest call took ``fastest`` s."""
    return replace(
        scout,
        settle=fastest < SETTLE_SECONDS,
        calls=scout.timing.calls(scout.size, fastest),
        repetitions=repetitions,
        look=False,
    )


def look(
    source: Source,
    request: Request,
    field: Field,
    prediction: Prediction,
    times: Times,
    late: float = 0.0,
    gain: float = MARGIN,
) -> Times:
    """Time every candidate that may win once, then those that still may, in the opposite order.

    Those with the best predictions come first: their times rule out others. A call may leave traces
    in the network for the next one, so the least time counts.

    - At the smallest size where bytes are most of a call, if calls are short, all have a look:
      unlike latencies, the times for bytes predict the times of long messages.
    - Where calls are long, a routine with tables of the topology has a look if it may win. Its
      messages share no link, so it is sure of its time. Others are lucky in one call and lose
      frames in the next.
    - As long as the best time is far above what others may take, some of these have a look. If most
      of a call is the wait for late ranks, there are no more looks, as each takes that wait.

    Args:
        source: makes measurements, or has them from a log.
        request: for one look at the candidates of ``field``.
        field: the candidates.
        prediction: of their times.
        times: gets each time as soon as it is measured, in place of the times that it has.
        late: the most seconds by which ranks come late. Calls take that much longer than their
            measured times, and fewer candidates are looked at.
        gain: differences below this share do not count. Where calls are long, a candidate that may
            gain less than this, or less than the usual least gain, has no look.

    Returns:
        The first times of the candidates that the predictions named, and not a look at this size.
    """
    named, unknown = _first(request, field, prediction, late)
    first = tuple(c for c in request.candidates if c in named or c in unknown)
    found: Times = {}
    try:
        _measure(source, replace(request, candidates=first), found)
    except BaseException:
        for candidate, seconds in found.items():
            times.setdefault(candidate, []).extend(seconds)
        raise
    times.clear()
    times.update({candidate: list(seconds) for candidate, seconds in found.items()})
    fastest = min(least(times).values())
    scheduled = field.scheduled
    field = field.without_dear(least(times))
    explores = fastest + late <= LONG_SECONDS and prediction.begins_to_tell(request.size, fastest)
    wanted = (
        set(request.candidates)
        if explores
        else _promising(request, field, prediction, times, late, min(gain, MARGIN), scheduled)
    )
    others = tuple(c for c in request.candidates if c in wanted and c not in times)
    if others:
        _measure(source, replace(request, candidates=others), times)
    if late <= fastest:
        others += _look_at_more(source, request, field, prediction, times)
    again = _worth_another_look(request.size, field, least(times), prediction, late)
    second = tuple(candidate for candidate in reversed((*first, *others)) if candidate in again)
    if second:
        _measure(source, replace(request, candidates=second), times)
    return {candidate: found[candidate] for candidate in found if candidate in named}


def _promising(
    request: Request,
    field: Field,
    prediction: Prediction,
    times: Times,
    late: float,
    gain: float,
    scheduled: frozenset[Candidate],
) -> set[Candidate]:
    """Return the candidates with the best predictions among those that may win.

    Where calls are long, to win is to be faster than the best one so far by the gain, and one of
    the candidates ``scheduled`` is among them, unless one was timed.
    """
    best = least(times)
    fastest = min(best.values())
    below = 1 - gain if fastest > LONG_SECONDS else 1.0
    soonest = _soonest(prediction, fastest)
    possible = {
        candidate: prediction.expected(candidate.algorithm, request.size) or 0.0
        for candidate in request.candidates
        if candidate in times
        or soonest(candidate.algorithm, request.size) <= below * field.rival(best, candidate)
    }
    fresh = {c: time for c, time in possible.items() if prediction.is_fresh(c.algorithm)}
    stale = {c: time for c, time in possible.items() if c not in fresh}
    if fastest > LONG_SECONDS:
        stale = {c: time for c, time in stale.items() if time <= field.rival(best, c)}
    surprised = _is_surprised(prediction, request, best)
    table = LOOKED_AT_IF_LATE if late > fastest else LOOKED_AT
    most = _most(table, fastest + late) + SURPRISED * surprised
    sure = fastest > LONG_SECONDS and not scheduled & times.keys()
    own = {c: time for c, time in possible.items() if sure and c in scheduled}
    return {
        *field.nearest(fresh, float("inf"), most),
        *field.nearest(stale, float("inf"), max(most // STALE, 1)),
        *field.nearest(own, float("inf"), 1),
    }


def _soonest(prediction: Prediction, fastest: float) -> Callable[[str, int], float]:
    """Return what predicts the least time: where calls are long, lines count at any distance."""
    return prediction.hope if fastest > LONG_SECONDS else prediction.least


def _look_at_more(
    source: Source,
    request: Request,
    field: Field,
    prediction: Prediction,
    times: Times,
) -> tuple[Candidate, ...]:
    """Time more candidates while the best one is far above what they may take; return them."""
    looked_at: tuple[Candidate, ...] = ()
    is_dear = min(least(times).values()) > DEAR_SECONDS
    looks, at_a_time = (MORE_LOOKS * MORE_AT_A_TIME, 1) if is_dear else (MORE_LOOKS, MORE_AT_A_TIME)
    for _ in range(looks):
        if sum(map(sum, times.values())) > MORE_SECONDS:
            break
        best = least(times)
        soonest = _soonest(prediction, min(best.values()))
        left = {
            candidate: prediction.expected(candidate.algorithm, request.size) or 0.0
            for candidate in request.candidates
            if candidate not in times
            and WORTH_MORE * soonest(candidate.algorithm, request.size)
            < field.rival(best, candidate)
        }
        nearest = field.nearest(left, float("inf"), at_a_time)
        more = tuple(candidate for candidate in request.candidates if candidate in nearest)
        if not more:
            break
        _measure(source, replace(request, candidates=more), times)
        looked_at += more
    return looked_at


def look_quickly(
    source: Source,
    request: Request,
    field: Field,
    prediction: Prediction,
    at_least: int,
    late: float = 0.0,
) -> Times:
    """Time once each candidate that may win: enough to predict its time at a larger size.

    Args:
        source: makes measurements, or has them from a log.
        request: for one look at the candidates of ``field``.
        field: the candidates.
        prediction: of their times.
        at_least: this many of each group are timed, whatever their predictions, as a candidate that
            is behind at a small size may win at a large one.
        late: the most seconds by which ranks come late.
    """
    times: Times = {}
    named, unknown = _first(request, field, prediction, late)
    first = tuple(c for c in request.candidates if c in named or c in unknown)
    _measure(source, replace(request, candidates=first), times)
    best = least(times)
    expected = {
        candidate: prediction.expected(candidate.algorithm, request.size) or 0.0
        for candidate in request.candidates
    }
    possible = {
        candidate: seconds
        for candidate, seconds in expected.items()
        if prediction.least(candidate.algorithm, request.size) <= field.rival(best, candidate)
    }
    most = _most(LOOKED_AT, min(best.values()) + late)
    nearest = {
        *field.nearest(expected, float("inf"), at_least),
        *field.nearest(possible, float("inf"), most),
    }
    others = tuple(c for c in request.candidates if c in nearest and c not in times)
    if others:
        _measure(source, replace(request, candidates=others), times)
    return times


def look_at_few(
    source: Source,
    request: Request,
    expected: Collection[Candidate],
    times: Times,
    rival: float = float("inf"),
) -> Times:
    """Time expected winners and their rivals twice, in opposite orders; adds to ``times``.

    ``rival`` is the least time in seconds of all other candidates, which are not timed again.
    Returns the first times of each.
    """
    few = tuple(candidate for candidate in request.candidates if candidate in expected)
    found: Times = {}
    _measure(source, replace(request, candidates=few), found)
    for candidate, seconds in found.items():
        times.setdefault(candidate, []).extend(seconds)
    best = min(rival, *least(times).values())
    limit = max(SCOUT_FACTOR * best, best + HICCUP_SECONDS)
    most = _most(AGAIN, best)
    again = tuple(c for c in few[::-1] if most and min(times[c]) <= limit)
    if again:
        _measure(source, replace(request, candidates=again), times)
    return found


def _first(
    request: Request, field: Field, prediction: Prediction, late: float
) -> tuple[set[Candidate], set[Candidate]]:
    """Return native and the best predicted ones of each group; and those without a prediction."""
    expected = {c: prediction.expected(c.algorithm, request.size) for c in request.candidates}
    known = {c: seconds for c, seconds in expected.items() if seconds is not None}
    fresh = {c: seconds for c, seconds in known.items() if prediction.is_fresh(c.algorithm)}
    long = min(known.values(), default=0.0) + late > LONG_SECONDS
    near = field.nearest(fresh, NEAR_FACTOR, 1 if long else 2)
    return {*near, NATIVE_CANDIDATE}, {c for c in request.candidates if c not in known}


def _is_surprised(
    prediction: Prediction, request: Request, best: Mapping[Candidate, float]
) -> bool:
    """Whether the best one took longer than it was predicted to, by more than the error."""
    leader = min(best, key=best.__getitem__)
    known = prediction.expected(leader.algorithm, request.size) is not None
    return known and prediction.is_above(leader.algorithm, request.size, best[leader])


def _worth_another_look(
    size: int,
    field: Field,
    seen: Mapping[Candidate, float],
    prediction: Prediction,
    late: float,
) -> set[Candidate]:
    """Return the candidates near the best, and those that only a hiccup may have put behind.

    Where calls are long, these are few: of those near the best the first ones, and of the others
    the one with the best prediction. Where calls are dear, there are none.
    """
    is_dear = min(seen.values()) > DEAR_SECONDS
    near: dict[Candidate, float] = {}
    unlucky: dict[Candidate, float] = {}
    for candidate, seconds in seen.items():
        best = field.rival(seen, candidate)
        expected = prediction.expected(candidate.algorithm, size)
        if (
            seconds <= best + HICCUP_SECONDS
            and prediction.is_above(candidate.algorithm, size, seconds)
            and prediction.least(candidate.algorithm, size) <= best
        ):
            unlucky[candidate] = (
                max(0.0, seconds - HICCUP_SECONDS) if expected is None else expected
            )
        elif seconds <= SCOUT_FACTOR * best:
            near[candidate] = seconds
    most = _most(AGAIN, min(seen.values()) + late)
    return {
        *field.nearest(near, float("inf"), most),
        *field.nearest(unlucky, float("inf"), most if is_dear else max(most, 1)),
    }


def try_short(source: Source, request: Request, field: Field, times: Times) -> Times:
    """Return the times that rank candidates; if calls are short, a trial of the best ones.

    Args:
        source: makes measurements, or has them from a log.
        request: for one look at candidates.
        field: all candidates.
        times: what looks saw.
    """
    best = least(times)
    fastest = min(best.values())
    if fastest >= SHORT_SECONDS:
        return times
    usual = {candidate: _without_luck(looks) for candidate, looks in times.items()}
    tried = distinct(c for seen in (best, usual) for c in field.nearest(seen, NEAR_FACTOR, TRIED))
    found: Times = {}
    _measure(source, decisive(replace(request, candidates=tried), fastest, TRIAL), found)
    return found


def _without_luck(looks: Sequence[float]) -> float:
    """Return the least seconds of some looks, or the next ones if the first was lucky."""
    first, *others = sorted(looks)
    return others[0] if others and others[0] > LUCKY * first else first


def _most(table: Sequence[tuple[float, int]], seconds: float) -> int:
    """Return the number that a table has for calls of this many seconds."""
    return next(count for limit, count in table if seconds <= limit)


def _measure(source: Source, request: Request, times: Times) -> None:
    """Add a request's measurements to ``times``, as soon as they are there."""
    for part in _parts(request):
        for candidate, repetitions in source.measure(part).by_candidate().items():
            times.setdefault(candidate, []).extend(repetitions)


def _parts(request: Request) -> Iterator[Request]:
    """Yield a request. If ranks come late, a look at many candidates takes long, and has parts.

    Between parts a budget may end. All looks have the same delays, so it does not matter in which
    part a candidate is. The native routine is in the first one.
    """
    if request.timing.arrivals is None or request.repetitions > 1:
        yield request
        return
    ordered = sorted(request.candidates, key=lambda candidate: candidate != NATIVE_CANDIDATE)
    for first in range(0, len(ordered), LATE_TOGETHER):
        yield replace(request, candidates=tuple(ordered[first : first + LATE_TOGETHER]))
