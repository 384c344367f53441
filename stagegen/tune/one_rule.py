"""One rule for calls of all sizes, where no rank knows the size of a call.

A rank of an alltoallv knows its own blocks only, so the ranks cannot choose by size. A ring that
wins with long blocks may take four times as long as the native routine with short ones. So the
choice must not be slower than the native routine at any of a few sizes, from the smallest to the
largest.

A search looks at short calls first, and leaves out the routines that are slower there. It tunes
parameters at the largest size, or at a smaller one if calls of the largest are dear. It times the
values that it finds at the other sizes, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate
from stagegen.measure.statistics import (
    LAUNCHES_LEAST,
    MARGIN,
    is_faster_in_launches,
    is_faster_in_rounds,
    launch_ratios,
)
from stagegen.tune.choose import Samples, is_faster_by_far, median
from stagegen.tune.decision import NATIVE_CANDIDATE, Rule
from stagegen.tune.field import Sample, Times, best_of_algorithms, least
from stagegen.tune.kinds import TableKinds
from stagegen.tune.point import Point, noise_of
from stagegen.tune.race import NEAR_FACTOR
from stagegen.tune.rules import alternatives

#: How many candidates of each kind are timed in launches, besides the native routine. As the few
#: times of scouting are noisy, they may be slower there by the share NEARLY; those that are not
#: come first.
FINALISTS, NEARLY = 3, 0.25

#: A look at a candidate, over one at native, is noise up to this many times the usual difference of
#: two looks at one candidate; both are logarithms.
NOISE_FACTOR = 2

#: How many algorithms of each kind are looked at with the longest messages if calls are dear there,
#: besides the native routine.
FOREMOST = 3


def slower_than_native(times: Times) -> set[str]:
    """Return the algorithms that looks saw to be slower than the native routine by NEARLY."""
    scores = least(times)
    limit = (1 + NEARLY) * scores.get(NATIVE_CANDIDATE, math.inf)
    as_fast = {candidate.algorithm for candidate in scores if scores[candidate] <= limit}
    return {candidate.algorithm for candidate in scores} - as_fast


def foremost(known: Iterable[Times], kinds: TableKinds) -> set[str]:
    """Return the algorithms with the least times at all known sizes, the first ones of each kind.

    The geometric mean of their times over the native routine's decides.
    """
    sizes = list(known)
    first: set[str] = set()
    for kind in kinds.names:
        scores = [
            best_of_algorithms({c: t for c, t in least(times).items() if kinds.may_serve(kind, c)})
            for times in sizes
        ]
        ratios = {
            name: math.prod(of_size[name] / of_size[NATIVE] for of_size in scores)
            for name in set.intersection(*(set(of_size) for of_size in scores)) - {NATIVE}
        }
        near = sorted(ratios, key=lambda name: (ratios[name], name))[:FOREMOST]
        last = scores[-1]
        best = min((last[name] for name in near), default=0.0)
        first.update(name for name in near if last[name] <= NEAR_FACTOR * best)
    return first


def ranked(samples: Mapping[int, Samples], margin: float) -> list[Candidate]:
    """Return the candidates that are nowhere slower than the native routine, the fastest first.

    Differences below the share ``margin`` do not count, nor do those that a test on all rounds of
    the launches does not confirm. The order is by the geometric mean over the sizes. The native
    routine is one of them.
    """
    able = {
        candidate: math.prod(_ratio(of_size[candidate], of_size) for of_size in samples.values())
        for candidate in _known_at_all(samples)
        if not any(_is_slower(of_size[candidate], of_size, margin) for of_size in samples.values())
    }
    return sorted(able, key=lambda candidate: (able[candidate], candidate))


def _known_at_all(samples: Mapping[int, Samples]) -> list[Candidate]:
    return [
        candidate
        for candidate in min(samples.values(), key=len, default={})
        if all(candidate in of_size for of_size in samples.values())
    ]


def _is_slower(sample: Sample, samples: Samples, margin: float) -> bool:
    """Whether it is slower than native. Small losses matter here, so all rounds are tested."""
    native = samples[NATIVE_CANDIDATE]
    if _ratio(sample, samples) <= 1 + margin:
        return False
    if len(launch_ratios(sample.launches, native.launches)) < LAUNCHES_LEAST:
        return True
    return is_faster_in_rounds(native.launches, sample.launches)


def _margin(gain: float) -> float:
    """Return the share of time that may be lost; 0 if a gain must be above the usual one."""
    return gain if gain <= MARGIN else 0.0


def choose_one(samples: Mapping[int, Samples], gain: float) -> Candidate:
    """Return the first candidate that beats the native routine; else the native routine.

    Each is tested at one size: where its first look was furthest ahead. The test is on the times of
    launches, so this look does not favour it. At most :data:`FINALISTS` are tested: if launches
    timed any candidate, one that they did not time is not chosen.
    """
    timed = {c for of_size in samples.values() for c, sample in of_size.items() if sample.launches}
    for candidate in ranked(samples, _margin(gain)):
        may_serve = candidate in timed or not timed
        if candidate != NATIVE_CANDIDATE and may_serve and _wins(candidate, samples, gain):
            return candidate
    return NATIVE_CANDIDATE


def make_one_rule(
    samples: Mapping[int, Samples], algorithms: Mapping[str, Algorithm], gain: float
) -> Iterator[Rule]:
    """Yield the rule for all calls; its alternatives, too, are nowhere slower than native.

    Args:
        samples: by size, the samples of the candidates that may serve.
        algorithms: those of the candidates, as for :func:`stagegen.tune.candidates.algorithms_of`.
        gain: smaller differences do not count.
    """
    if samples:
        largest = samples[max(samples)]
        able = {candidate: largest[candidate] for candidate in ranked(samples, _margin(gain))}
        chosen = choose_one(samples, gain)
        yield Rule(0, chosen, alternatives=alternatives(chosen, able, algorithms))


def name_finalists_of_all(points: Mapping[int, Point], kinds: TableKinds, gain: float) -> None:
    """Choose the finalists of all sizes: the same ones at each, by what scouting saw.

    Args:
        points: what is known of each size; those without launches get finalists.
        kinds: the tables to make; each has its own best.
        gain: smaller differences do not count.
    """
    samples = {size: _looks(point) for size, point in points.items()}
    noises = {size: noise_of([point]) for size, point in points.items()}
    best = {NATIVE_CANDIDATE}
    for kind in kinds.names:
        of_kind = {size: kinds.of(kind, of_size) for size, of_size in samples.items()}
        best.update(promising(of_kind, noises, _margin(gain))[:FINALISTS])
    for point in points.values():
        if not point.launches:
            point.finalists = tuple(candidate for candidate in point.seen if candidate in best)
            point.holders = frozenset(point.finalists)
            point.ranks = {c: point.seen[c][0] for c in point.finalists}


def _looks(point: Point) -> Samples:
    """Return the first two looks: what is near the best has more, and so a lower least time."""
    return {candidate: Sample(tuple(seconds[:2])) for candidate, seconds in point.seen.items()}


def promising(
    samples: Mapping[int, Samples], noises: Mapping[int, float], margin: float
) -> list[Candidate]:
    """Return what launches should time besides native, the most promising first.

    At a size, a difference counts by as much as it exceeds the noise: among short calls, the
    luckiest of many looks would lead else. What is slower than native by the share ``margin`` at
    some size comes last; what is slower by :data:`NEARLY` is left out.
    """
    differences = {
        candidate: [
            _beyond(math.log(_ratio(of_size[candidate], of_size)), NOISE_FACTOR * noises[size])
            for size, of_size in samples.items()
        ]
        for candidate in _known_at_all(samples)
        if candidate != NATIVE_CANDIDATE
    }
    slowest = {candidate: max(known) for candidate, known in differences.items()}
    able = [candidate for candidate, one in slowest.items() if one <= math.log(1 + NEARLY)]
    return sorted(able, key=lambda c: (slowest[c] > math.log(1 + margin), sum(differences[c]), c))


def _beyond(difference: float, noise: float) -> float:
    return math.copysign(max(0.0, abs(difference) - noise), difference)


def _ratio(sample: Sample, samples: Samples) -> float:
    """Return the time over the native routine's: within launches, if both have some."""
    native = samples[NATIVE_CANDIDATE]
    ratios = launch_ratios(sample.launches, native.launches)
    return statistics.median(ratios) if ratios else median(sample) / median(native)


def _look(sample: Sample) -> float:
    """Return the seconds of the first look."""
    return (sample.scouted or sample.seconds)[0]


def _wins(candidate: Candidate, samples: Mapping[int, Samples], gain: float) -> bool:
    """Whether it beats the native routine: in launches, or in looks if there are none.

    A native routine that fell so far behind that it was not timed again is beaten, too.
    """

    def ahead(of_size: Samples) -> float:
        return _look(of_size[candidate]) / _look(of_size[NATIVE_CANDIDATE])

    launched = [of_size for of_size in samples.values() if of_size[candidate].launches]
    chosen = min(launched or samples.values(), key=ahead)
    sample, native = chosen[candidate], chosen[NATIVE_CANDIDATE]
    if native.dropped or not native.launches:
        return _ratio(sample, chosen) < 1 - gain
    tested = is_faster_in_launches(sample.launches, native.launches, gain)
    return tested or is_faster_by_far(sample, native, gain)
