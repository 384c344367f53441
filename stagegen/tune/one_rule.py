"""One rule for calls of all sizes, where no rank knows the size of a call.

A rank of an alltoallv knows its own blocks only, so the ranks cannot choose by size. A ring that
wins with long blocks may take four times as long as the native routine with short ones. So the
choice must be slower than the native routine at none of a few sizes, from the smallest to the
largest.

Short calls are looked at first, and what is slower there is not looked at with long ones.
Parameters are tuned at the largest size, and the values that it gives are timed at the smaller
ones, too. A number of bytes that covers more than a smaller message is there the value that was
timed, as all of these are equal.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from stagegen.catalogue import Algorithm
from stagegen.measure.records import Candidate
from stagegen.measure.statistics import is_faster_in_launches, launch_ratios
from stagegen.tune.choose import Samples, median
from stagegen.tune.decision import NATIVE_CANDIDATE, Rule
from stagegen.tune.field import Sample, least
from stagegen.tune.kinds import Kinds
from stagegen.tune.point import Point
from stagegen.tune.rules import alternatives

#: How many candidates of each kind are timed in launches, besides the native routine. Scouting may
#: show them slower than it by the share NEARLY, as its few times are noisy; others come first.
FINALISTS, NEARLY = 3, 0.25

#: Returns what a candidate is at a size in bytes.
AtSize: TypeAlias = Callable[[Candidate, int], Candidate]


def alike(samples: Mapping[int, Samples], at: AtSize) -> dict[int, Samples]:
    """Return the samples of each size by the candidates of the largest one."""
    largest = samples[max(samples)] if samples else {}
    return {
        size: {c: of_size[at(c, size)] for c in largest if at(c, size) in of_size}
        for size, of_size in samples.items()
    }


def as_fast_as_native(point: Point) -> set[str]:
    """Return the algorithms that scouting saw to be as fast as the native routine, or nearly."""
    scores = least(point.seen)
    limit = (1 + NEARLY) * scores.get(NATIVE_CANDIDATE, math.inf)
    return {candidate.algorithm for candidate in scores if scores[candidate] <= limit}


def ranked(samples: Mapping[int, Samples], gain: float) -> list[Candidate]:
    """Return the candidates that are nowhere slower than the native routine, the fastest first.

    A share of time below ``gain`` is no difference. The order is by the geometric mean over the
    sizes. The native routine is one of them.
    """
    ratios = {
        candidate: [_ratio(of_size[candidate], of_size) for of_size in samples.values()]
        for candidate in min(samples.values(), key=len, default={})
        if all(candidate in of_size for of_size in samples.values())
    }
    able = [candidate for candidate, known in ratios.items() if max(known) <= 1 + gain]
    return sorted(able, key=lambda candidate: (math.prod(ratios[candidate]), candidate))


def choose_one(samples: Mapping[int, Samples], gain: float) -> Candidate:
    """Return the first of these that beats the native routine; else that one.

    Each is tested at one size: where scouting saw it ahead by most. The one that scouting ranked
    best is tested first. If it fails, none replaces the native routine: so the probability of a
    false change is that of one test, as with a rule for each size.
    """
    able = [candidate for candidate in ranked(samples, gain) if candidate != NATIVE_CANDIDATE]
    scouted = {candidate: _scouted(candidate, samples) for candidate in able}

    def wins(candidate: Candidate) -> bool:
        return _wins(candidate, samples[min(scouted[candidate])[1]], gain)

    first = min(able, key=lambda c: (math.prod(r for r, _ in scouted[c]), c), default=None)
    if first is None or not wins(first):
        return NATIVE_CANDIDATE
    return next(candidate for candidate in able if wins(candidate))


def make_one_rule(
    samples: Mapping[int, Samples], algorithms: Mapping[str, Algorithm], gain: float
) -> Iterator[Rule]:
    """Yield the rule for all calls; its alternatives, too, are nowhere slower than native.

    Args:
        samples: at each size, of the candidates that may serve, as :func:`alike` returns them.
        algorithms: of these candidates, as for :func:`stagegen.tune.candidates.algorithms_of`.
        gain: a smaller difference is none.
    """
    if samples:
        largest = samples[max(samples)]
        able = {candidate: largest[candidate] for candidate in ranked(samples, gain)}
        chosen = choose_one(samples, gain)
        yield Rule(0, chosen, alternatives=alternatives(chosen, able, algorithms))


def name_finalists_of_all(
    points: Mapping[int, Point], kinds: Kinds, at: AtSize, gain: float
) -> None:
    """Choose the finalists of all sizes: the same ones at each, by what scouting saw.

    Args:
        points: what is known of each size; get the finalists.
        kinds: the tables to make; each has its own best.
        at: says what a candidate is at a size.
        gain: a smaller difference is none.
    """
    # Some had more calls than others, whose least is lower for that alone. The looks were equal.
    samples = alike({size: _looks(point) for size, point in points.items()}, at)
    best = {NATIVE_CANDIDATE}
    for kind in kinds.names:
        of_kind = {size: kinds.of(kind, of_size) for size, of_size in samples.items()}
        able = dict.fromkeys((*ranked(of_kind, gain), *ranked(of_kind, NEARLY)))
        best.update([candidate for candidate in able if candidate != NATIVE_CANDIDATE][:FINALISTS])
    for size, point in points.items():
        here = {at(candidate, size) for candidate in best}
        scores = {**least(point.seen), **least(point.tried)}
        point.finalists = tuple(candidate for candidate in point.seen if candidate in here)
        point.holders = frozenset(point.finalists)
        point.ranks = {candidate: scores[candidate] for candidate in point.finalists}


def _looks(point: Point) -> Samples:
    return {candidate: Sample((seconds[0],)) for candidate, seconds in point.seen.items()}


def _ratio(sample: Sample, samples: Samples) -> float:
    """Return the time over that of the native routine: within launches, if both have some."""
    native = samples[NATIVE_CANDIDATE]
    ratios = launch_ratios(sample.launches, native.launches)
    return statistics.median(ratios) if ratios else median(sample) / median(native)


def _scouted(candidate: Candidate, samples: Mapping[int, Samples]) -> list[tuple[float, int]]:
    """Return the time over the native routine's that scouting saw at each size, with the size."""
    return [(_seen(s[candidate]) / _seen(s[NATIVE_CANDIDATE]), size) for size, s in samples.items()]


def _seen(sample: Sample) -> float:
    """Return the least seconds of scouting."""
    return sample.rank if sample.rank < math.inf else median(sample)


def _wins(candidate: Candidate, samples: Samples, gain: float) -> bool:
    """Whether it beats the native routine: by what launches say, or by looks if there are none.

    A native routine that fell so far behind that it was not timed again is beaten, too.
    """
    sample, native = samples[candidate], samples[NATIVE_CANDIDATE]
    if native.dropped or not native.launches:
        return _ratio(sample, samples) < 1 - gain
    return is_faster_in_launches(sample.launches, native.launches, gain)
