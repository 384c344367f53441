"""Further launches, where a large gain over the native routine is in doubt.

With five launches, a challenger must be ahead in each. Some native calls have two speeds: what the
connections remember decides which. If such calls are fast in one of five launches, a routine that
is 1.7 times as fast in the other four would not be chosen. So launches go on where calls are long,
but not dear, and the gain is large in all launches but one: up to :data:`FURTHER` more, until the
test has an answer. With six launches or more, a challenger may be behind in one of them.

The price: with up to three tests, a routine that is no faster passes one of them with a probability
of 0.05 in place of 0.03, if its ratios scatter so much that a large gain comes by luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import (
    LAUNCHES_LEAST,
    is_faster_in_launches,
    is_faster_in_the_mean,
    launch_ratios,
)
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.point import Point
from stagegen.tune.protocol import Protocol

#: How many launches may follow those of the protocol, for a gain of at least this share.
FURTHER, LARGE = 2, 0.2


def further_launches(protocol: Protocol) -> range:
    """Return the numbers of the launches that may follow.

    There are none if the protocol has fewer than five: these have rules of their own.
    """
    count = FURTHER if protocol.launches >= LAUNCHES_LEAST else 0
    return range(protocol.launches + 1, protocol.launches + 1 + count)


def launches_between(
    point: Point, challenger: Candidate, holder: Candidate, protocol: Protocol
) -> int:
    """Return how many launches may decide between two; more for a large gain over native.

    If what was called before may decide, launches that exclude this tell the gain
    (:attr:`Point.settles_from`); before the first of them, it may be large.
    """
    if holder != NATIVE_CANDIDATE or not point.is_long or point.is_dear:
        return protocol.launches
    ours, theirs = point.raced[challenger], point.raced[holder]
    settled = launch_ratios(since_settled(point, ours), theirs)
    large = [ratio <= 1 - LARGE for ratio in launch_ratios(ours, theirs)]
    settles_from = point.settles_from or math.inf
    is_unknown = settles_from <= protocol.launches and not settled
    if not (any(large) or is_unknown) or sum(ratio > 1 - LARGE for ratio in settled) > 1:
        return protocol.launches
    return protocol.launches + len(further_launches(protocol))


def since_settled(point: Point, raced: Mapping[int, list[float]]) -> dict[int, list[float]]:
    """Return the times in the launches that exclude what was called before, if any has to."""
    return {n: times for n, times in raced.items() if n >= (point.settles_from or 0)}


def asks_for_more(point: Point, protocol: Protocol) -> bool:
    """Whether a further launch may decide: a challenger has a large gain, and no answer yet."""
    if NATIVE_CANDIDATE not in point.running or NATIVE_CANDIDATE not in point.raced:
        return False
    native = point.raced[NATIVE_CANDIDATE]
    challengers = [c for c in point.running if c != NATIVE_CANDIDATE and c in point.raced]
    wins = [
        is_faster_in_launches(point.raced[c], native, protocol.gain)
        or is_faster_in_the_mean(point.raced[c], native, protocol.gain)
        for c in challengers
    ]
    return not any(wins) and any(
        launches_between(point, c, NATIVE_CANDIDATE, protocol) > protocol.launches
        for c in challengers
    )
