"""The launches that decide: the finalists of a size are timed anew in several jobs.

In each launch the finalists take turns, so what changes with the launch or with time hits all
alike. Candidates that are beyond doubt, or can no longer change the choice, are not timed again
(:mod:`stagegen.tune.elimination`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from stagegen.measure.records import Candidate, Request
from stagegen.measure.source import Source
from stagegen.measure.statistics import LAUNCHES_LEAST, launch_ratios, summarize
from stagegen.tune.choose import far
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.elimination import CONFIRMED, eliminate, is_settled, worth_timing
from stagegen.tune.field import least
from stagegen.tune.point import Point
from stagegen.tune.protocol import Protocol
from stagegen.tune.race import SCOUT_FACTOR, decisive, in_random_order

#: The repetitions of each candidate that a launch adds at a time, by the most seconds that a call
#: takes.
CHUNKS = ((0.15, 3), (math.inf, 1))

#: A launch goes on if at least this share of the times of a candidate are above its median in all
#: launches by this factor. Beside dear calls, a hiccup is small: they are not repeated.
DISTURBED_SHARE, DISTURBED = 0.4, 1.25

#: One hiccup cannot move the median of this many repetitions; they are made whatever they cost.
THREE = 3

#: While launches confirm a routine that was faster on another communicator, the interval of a
#: median may be wider by this factor: the only open question is whether native is as fast.
WIDER_IF_TOLD = 3

#: The most repetitions of a candidate in all launches together.
REPETITIONS_MOST = 60

#: How many candidates of a group are finalists, by the most seconds that a call takes, and within
#: which factor of the best. The second factor is for long calls; there, it also limits the
#: candidates that hold the nearby sizes.
FINALISTS = ((0.1, 3), (1.0, 2), (math.inf, 1))
NEAR, NEAR_LONG = 1.15, 1.06

#: If a candidate's ratios to native differ by more than this factor, what was called before may
#: decide: TCP remembers earlier traffic. Looks tell no smaller difference.
SCATTERED = NEAR_LONG

#: Times of a candidate that differ by more than this factor are erratic.
ERRATIC = 1.25

#: How many finalists a group has besides native if another communicator's search told what may win.
FINALISTS_IF_TOLD = 1

#: The number of the launch that scouts.
SCOUTING = 0


def run_launch(
    source: Source,
    request: Request,
    point: Point,
    protocol: Protocol,
    cap: float,
    noise: float | None = 0.0,
    scatter: float = 0.0,
) -> None:
    """Time the finalists of a size in one launch, unless its choice is settled.

    Args:
        source: makes measurements, or has them from a log.
        request: for one look at candidates, in this launch.
        point: what is known of the size; learns more.
        protocol: how often to measure, and which differences count.
        cap: seconds of measured time after which no repetitions are added.
        noise: as :func:`stagegen.tune.point.noise_of` has it; None if all go on to the end.
        scatter: the noise of launches, as :func:`stagegen.tune.choose.noise_among` has it.
    """
    if is_settled(point, protocol, scatter):
        return
    running = worth_timing(point, scatter)
    turn = in_random_order(replace(request, candidates=running), protocol.seed)
    turn = decisive(turn, point.fastest, _chunk(point.lasts, protocol))
    turn = replace(turn, settle=turn.settle or point.settles_from is not None)
    most = max(turn.repetitions, math.ceil(REPETITIONS_MOST / protocol.launches))
    spent, done = 0.0, 0
    confirms = point.is_told and len(point.launches) < CONFIRMED <= protocol.launches
    width = protocol.width * (WIDER_IF_TOLD if confirms else 1)
    allowed = width * math.sqrt(protocol.launches / (len(point.launches) + 1))
    while True:
        for candidate, seconds in source.measure(turn).by_candidate().items():
            launches = point.raced.setdefault(candidate, {})
            launches.setdefault(request.launch, []).extend(seconds)
            spent += (turn.calls + turn.settle) * sum(point.late + one for one in seconds)
        done += turn.repetitions
        leading = point.field.leaders({one: point.median(one) for one in running})
        known = all(summarize(point.pooled(one)).width <= allowed for one in leading)
        known &= done >= THREE or not any(_is_erratic(point, one) for one in running)
        clear = point.is_dear or not any(
            _is_disturbed(point, one, request.launch) for one in running
        )
        over = spent >= cap and (clear or done >= THREE)
        if over or done >= most or (known and clear):
            break
        if point.is_long:
            left = _worth_repeating(point, turn)
            if len(left) == 1 < len(turn.candidates) and done >= THREE:
                break  # there is nothing left to compare it with
            if left != turn.candidates:
                turn = replace(turn, candidates=left, first=done if turn.timing.arrivals else 0)
    point.launches.append(request.launch)
    if not turn.settle and _may_be_traces(point, protocol.gain):
        point.settles_from = request.launch + 1
    if noise is not None:
        eliminate(point, protocol, noise)


def _worth_repeating(point: Point, turn: Request) -> tuple[Candidate, ...]:
    """Return the candidates of a turn that are near the best of a group, or may only seem slow.

    They may be near in all launches, or in this one: one that is slow in general and was lucky here
    would have its luck as the median of the launch.
    """
    medians = {one: point.median(one) for one in turn.candidates}
    here = {one: statistics.median(point.raced[one][turn.launch]) for one in turn.candidates}
    return tuple(
        one
        for one in turn.candidates
        if any(t[one] <= SCOUT_FACTOR * point.field.rival(t, one) for t in (medians, here))
        or _is_disturbed(point, one, turn.launch)
    )


def _may_be_traces(point: Point, gain: float) -> bool:
    """Whether what was called before may decide if a candidate replaces the native routine.

    Long calls have no untimed call before them, as they soon bring the network into their own
    state. Some do not: with bbr, a native alltoall was as fast as others after their calls, and
    slower by a fifth after its own. So the best challenger leads in some launches or in looks, but
    not clearly in all, and its leads differ by more than looks can tell. Later launches have
    untimed calls then. This launch counts as it is: if it were made again, a challenger would have
    two chances in it. The noise of other sizes does not count, as such traces are part of it.
    """
    challengers = {c: point.median(c) for c in point.running if c != NATIVE_CANDIDATE}
    if not (point.is_long and challengers and NATIVE_CANDIDATE in point.running):
        return False
    seen = least(point.seen)
    for best in point.field.without_dear(seen).leaders(challengers):
        ratios = launch_ratios(point.raced[best], point.raced[NATIVE_CANDIDATE])
        ratios.append(seen[best] / seen[NATIVE_CANDIDATE])
        low, high = min(ratios), max(ratios)
        leads, is_clear = low < 1 - gain, high * far(1, is_long=True) < 1
        if leads and not is_clear and high > SCATTERED * low:
            return True
    return False


def _is_erratic(point: Point, candidate: Candidate) -> bool:
    """Whether the times of a long call differ so much that a single round in a launch is luck."""
    times = [*point.seen[candidate], *point.pooled(candidate)]
    return point.is_long and max(times) > ERRATIC * min(times)


def _is_disturbed(point: Point, candidate: Candidate, launch: int) -> bool:
    """Whether so many times of a launch are odd that hiccups may have moved its median."""
    usual = statistics.median([*point.seen[candidate], *point.pooled(candidate)])
    times = point.raced[candidate][launch]
    odd = sum(seconds > DISTURBED * usual for seconds in times)
    return odd >= DISTURBED_SHARE * len(times)


def _chunk(lasts: float, protocol: Protocol) -> int:
    """Return how many repetitions a launch adds at a time; few launches need more of them."""
    chunk = next(count for most, count in CHUNKS if lasts <= most)
    return max(chunk, math.ceil(LAUNCHES_LEAST / protocol.launches))


def _leads_as_named(point: Point, scores: Mapping[Candidate, float]) -> bool:
    """Whether the best candidate that predictions named is within :data:`NEAR_LONG` of all others.

    A single look cannot tell a smaller difference.
    """
    named = [scores[candidate] for candidate in point.named]
    return bool(named) and min(named) <= NEAR_LONG * min(scores.values())


def _leaders(point: Point, scores: Mapping[Candidate, float], near: float) -> list[Candidate]:
    """Return the first candidates of each group that are near its best."""
    most = next(count for limit, count in FINALISTS if point.lasts <= limit)
    return point.field.nearest(scores, near, most)


def _challengers(point: Point, scores: Mapping[Candidate, float], near: float) -> list[Candidate]:
    """Return the first candidates besides native, if another search has told what may win."""
    others = {
        candidate: seconds
        for candidate, seconds in scores.items()
        if candidate != NATIVE_CANDIDATE and seconds <= near * point.field.rival(scores, candidate)
    }
    return point.field.nearest(others, math.inf, FINALISTS_IF_TOLD)


def _steady(
    point: Point, scores: Mapping[Candidate, float], chosen: Set[Candidate]
) -> set[Candidate]:
    """Return the best candidate with a schedule, if it may be the fastest though its look is not.

    It may be if both it and the native routine are near the best, or if looks are erratic. Without
    an order, messages meet in the ports of switches, and calls of one routine may take twice as
    long as others. A single look cannot tell, and the least of many is a lucky one.
    """
    ordered = [c for c in scores if c in point.field.ordered]
    if not ordered:
        return set()
    steady = min(ordered, key=lambda c: (scores[c], c))
    seen = [candidate for candidate in chosen if candidate in point.seen]
    is_erratic = any(_is_erratic(point, candidate) for candidate in seen)
    slowest = max((statistics.median(point.seen[c]) for c in seen), default=0.0) * is_erratic
    is_close = scores.get(NATIVE_CANDIDATE, math.inf) <= NEAR * min(scores.values())
    most = max(NEAR * min(scores.values()) * is_close, slowest)
    return {steady} if scores[steady] <= most else set()


def name_finalists(point: Point, neighbours: Sequence[Candidate], *, is_told: bool = False) -> None:
    """Choose the finalists: the leaders of the groups, and the holders of the nearby sizes.

    A look at candidates that were named before any call of this size favours none of them. If the
    best is among them, this look counts as a launch (:attr:`Point.named`).

    Args:
        point: what scouting saw.
        neighbours: the candidates that may be chosen at the neighbouring sizes.
        is_told: as in the plan.
    """
    scores = least(point.tried)
    near = NEAR_LONG if point.is_long else NEAR
    leading = _challengers(point, scores, near) if is_told else _leaders(point, scores, near)
    best = min(scores.values())
    within = NEAR_LONG if point.is_long else SCOUT_FACTOR
    holding = {c for c in neighbours if scores.get(c, math.inf) <= within * best}
    chosen = {*leading, *holding, NATIVE_CANDIDATE}
    if point.is_long:
        native = scores.get(NATIVE_CANDIDATE, math.inf)
        chosen = {c for c in chosen if c == NATIVE_CANDIDATE or scores[c] < native}
        chosen |= _steady(point, scores, chosen)
    if _leads_as_named(point, scores):
        chosen = {c for c in chosen if c in point.named} | {
            min(point.named, key=scores.__getitem__)
        }
        point.raced = {c: {SCOUTING: list(point.named[c])} for c in chosen}
        point.launches = [SCOUTING]
    point.finalists = tuple(candidate for candidate in point.seen if candidate in chosen)
    point.holders = frozenset({*holding, NATIVE_CANDIDATE}) & chosen
    point.ranks = {candidate: scores.get(candidate, math.inf) for candidate in point.finalists}
