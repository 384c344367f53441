"""From samples to choices: which candidate replaces another one, and between which sizes.

The native routine comes first: a candidate replaces it only if the test on the launches says that
it is faster (:func:`stagegen.measure.statistics.is_faster_in_launches`). Among the candidates that
are, the one that serves the neighbouring sizes stays unless the leader beats it by the same test.
So noise makes no rule.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import (
    LAUNCHES_LEAST,
    MARGIN,
    is_faster_in_launches,
    is_faster_in_the_mean,
)
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.field import DEAR_SECONDS, HICCUP_SECONDS, LONG_SECONDS, Sample

Samples = Mapping[Candidate, Sample]

#: A crossover is known when its interval is this share of its lower end, or one byte.
RESOLUTION = 1 / 8

#: By the number of launches of both: a candidate loses by far if even the least of its times, looks
#: included, is above the other's median by this factor. The first table is for dear calls, the
#: second for all others. With as many launches as a test needs, the test decides alone.
FAR = {1: 1.3, 2: 1.12, 3: 1.06}
FAR_IF_SHORT = {1: 1.5, 2: 1.2, 3: 1.1}

#: Looks cannot tell smaller differences: the first is for long calls, the second for others.
SEEN, SEEN_IF_SHORT = 1.06, 1.15

#: The logarithm of the factor is also at least this many times the noise of other times.
CLEAR_OF_NOISE = 3

#: If a candidate has no more times than this, all may have met a hiccup. Unless calls are dear, a
#: hiccup is added to the time that they must exceed.
FEW = 3

#: A candidate is steadier than another one that is as fast if its mean is lower by this factor.
STEADIER = 1.03


def median(sample: Sample) -> float:
    """Return the median in seconds; of scouting alone, the least.

    A trial is so short that hiccups can be half of it.
    """
    return statistics.median(sample.seconds) if sample.launches else min(sample.seconds)


def running(samples: Samples) -> dict[Candidate, Sample]:
    """Return the candidates that were timed to the end."""
    return {candidate: sample for candidate, sample in samples.items() if not sample.dropped}


def fastest(samples: Samples) -> Candidate:
    """Return the candidate with the least median; of equals the first by name."""
    left = running(samples)
    return min(sorted(left), key=lambda candidate: median(left[candidate]))


def choose_all(samples: Mapping[int, Samples], gain: float = MARGIN) -> dict[int, Candidate]:
    """Return the choice for each size, ascending.

    Sizes are visited upwards, then downwards, so the choices at the sizes before and after have a
    say.
    """
    choices: dict[int, Candidate] = {}
    before = NATIVE_CANDIDATE
    noise = {is_long: noise_among(samples, is_long) for is_long in (False, True)}
    noises = {size: noise[_is_long(of_size)] for size, of_size in samples.items()}
    for size in sorted(samples):
        before = choices[size] = choose(samples[size], before, gain, noises[size])
    after: Candidate | None = None
    for size in sorted(samples, reverse=True):
        left = worthy(samples[size], gain, noises[size])
        if after is not None and after in left:
            chosen = samples[size][choices[size]]
            if choices[size] != NATIVE_CANDIDATE and not _is_faster(
                chosen, samples[size][after], gain
            ):
                smaller = [one for one in choices if one < size]
                if not smaller or choices[max(smaller)] != choices[size]:
                    choices[size] = steadier(left, after, gain)
        after = choices[size]
    return choices


def choose(
    samples: Samples, incumbent: Candidate, gain: float = MARGIN, noise: float = 0.0
) -> Candidate:
    """Return the choice for a size.

    Args:
        samples: of its candidates, the native routine among them.
        incumbent: the candidate that serves a neighbouring size; the native routine if none does.
        gain: smaller differences do not count.
        noise: as :func:`noise_among` has it.
    """
    left = worthy(samples, gain, noise)
    if not left:
        return NATIVE_CANDIDATE
    best = fastest(left)
    if incumbent in left and not _is_faster(left[best], left[incumbent], gain):
        best = incumbent
    return steadier(left, best, gain)


def noise_among(samples: Mapping[int, Samples], is_long: bool) -> float:
    """Return by how much the times of one candidate differ, in the median: a logarithm.

    It is 0 if nothing was timed twice.

    Args:
        samples: by size, of all candidates.
        is_long: whether the sizes whose calls are long count, or the others.
    """
    alike = [of_size for of_size in samples.values() if _is_long(of_size) == is_long]
    logs = [
        abs(math.log(one.scouted[0] / seconds[0]))
        for of_size in alike
        for one in of_size.values()
        if one.scouted
        for seconds in one.launches.values()
    ]
    return statistics.median(logs) if logs else 0.0


def worthy(samples: Samples, gain: float = MARGIN, noise: float = 0.0) -> Samples:
    """Return the samples of the candidates that beat the native routine in the launches.

    The challenger that scouting ranked best is tested first. If it fails, none replaces the native
    routine. So the probability of a false change does not grow with the number of challengers.
    Where calls are long, each is tested for itself: noise is small beside them, and few challenge.
    A lead by far needs no test, and counts for each candidate. If the native routine fell behind,
    or was replaced, all running candidates beat it, except those that another one beats by far.
    """
    left = running(samples)
    native = left.pop(NATIVE_CANDIDATE, None)
    if native is not None:
        first = None if _is_long(samples) else challenger(samples)
        passes = first is None or (first in left and _is_faster(left[first], native, gain, noise))
        beats = _is_faster if passes else is_faster_by_far
        left = {one: sample for one, sample in left.items() if beats(sample, native, gain, noise)}
    return unbeaten(left)


def without_doubtful(samples: Samples) -> Samples:
    """Return the samples of a size for its final choice.

    If a budget left no time for launches at this size, the candidates that looks cannot tell from
    the native routine (:data:`SEEN`) are out: the least of many looks is often luck.
    """
    if NATIVE_CANDIDATE not in samples or any(one.launches for one in samples.values()):
        return samples
    native = min(samples[NATIVE_CANDIDATE].seconds)

    def leads(sample: Sample) -> bool:
        fast = min(sample.seconds)
        return native > (SEEN if fast > LONG_SECONDS else SEEN_IF_SHORT) * fast

    return {
        candidate: replace(one, dropped=one.dropped or not leads(one))
        if candidate != NATIVE_CANDIDATE
        else one
        for candidate, one in samples.items()
    }


def _is_long(samples: Samples) -> bool:
    """Whether noise and hiccups are small beside a call, as :attr:`Point.is_long` says it."""
    return min(min(*s.seconds, *s.scouted, math.inf) for s in samples.values()) > LONG_SECONDS


def unbeaten(samples: Samples, noise: float = 0.0) -> dict[Candidate, Sample]:
    """Return the samples without those beaten by far, which may lack later launches.

    The native routine is beaten only by what would replace it: by more than the noise, too, as
    :func:`noise_among` has it.
    """
    return {
        candidate: sample
        for candidate, sample in samples.items()
        if not any(
            is_faster_by_far(other, sample, noise=noise if candidate == NATIVE_CANDIDATE else 0.0)
            for other in samples.values()
        )
    }


def challenger(samples: Samples) -> Candidate | None:
    """Return the candidate of the launches that is tested against the native routine first."""
    ranked = sorted(
        (sample.rank, candidate)
        for candidate, sample in samples.items()
        if candidate != NATIVE_CANDIDATE and sample.launches and sample.rank < math.inf
    )
    return ranked[0][1] if ranked else None


def steadier(samples: Samples, chosen: Candidate, gain: float = MARGIN) -> Candidate:
    """Return the candidate with the least mean if the chosen one is not faster than it.

    Programs pay the mean of all calls. A routine that loses frames now and then may have as good a
    median as one that never does. Only the launches that decide tell: each candidate has several
    times there. In the one or two looks of scouting, a single lost frame would be most of the mean.
    As for any choice, they count only as long as there was no launch.
    """
    left = {c: s for c, s in running(samples).items() if c != NATIVE_CANDIDATE}
    steady = min(sorted(left), key=lambda candidate: left[candidate].mean)
    if samples[chosen].mean <= STEADIER * samples[steady].mean:
        return chosen
    return chosen if _is_faster(samples[chosen], samples[steady], gain) else steady


def far(launches: int, is_long: bool) -> float:
    """Return the factor by which a candidate loses by far after some launches (:data:`FAR`).

    ``is_long`` says whether hiccups and noise are small beside a call.
    """
    return (FAR if is_long else FAR_IF_SHORT)[min(launches, max(FAR))]


def is_faster_by_far(
    challenger: Sample, incumbent: Sample, gain: float = 0.0, noise: float = 0.0
) -> bool:
    """Whether a difference is clear after few launches: above the least gain, and the noise.

    Launches are few if calls are dear, if a budget ends, or if the options ask for few.
    """
    shared = challenger.launches.keys() & incumbent.launches.keys()
    if not 0 < len(shared) < LAUNCHES_LEAST:
        return False
    fast = statistics.median(chain.from_iterable(challenger.launches[n] for n in shared))
    times = (*incumbent.scouted, *incumbent.seconds)
    is_dear = fast > DEAR_SECONDS
    hiccup = 0.0 if is_dear or len(times) > FEW else HICCUP_SECONDS
    factor = max(far(len(shared), is_dear), 1 / (1 - gain), math.exp(CLEAR_OF_NOISE * noise))
    return min(times) > factor * fast + hiccup


def _is_faster(challenger: Sample, incumbent: Sample, gain: float, noise: float = 0.0) -> bool:
    """Whether a difference counts; if either has no launches, the least times decide."""
    if challenger.launches and incumbent.launches:
        return (
            is_faster_in_launches(challenger.launches, incumbent.launches, gain)
            or _is_faster_in_the_mean(challenger, incumbent, gain)
            or is_faster_by_far(challenger, incumbent, gain, noise)
        )
    return min(challenger.seconds) < (1 - gain) * min(incumbent.seconds)


def _is_faster_in_the_mean(challenger: Sample, incumbent: Sample, gain: float) -> bool:
    """Whether the launches say that it is faster, and the mean of long calls gains enough.

    Programs pay the mean. An incumbent that is as fast in most calls, and far slower in others, has
    a good median. So the launches are compared by their means.
    """
    if min(challenger.seconds) <= LONG_SECONDS:
        return False
    return is_faster_in_the_mean(challenger.launches, incumbent.launches, gain)


def crossover(
    low: int,
    high: int,
    above_wins: Callable[[int], bool],
    resolution: float = RESOLUTION,
) -> tuple[int, int]:
    """Find by binary search where the choice of ``low`` gives way to the choice of ``high``.

    Args:
        low: a size in bytes at which the lower choice serves.
        high: a larger one at which the upper choice serves.
        above_wins: measures at a size whether the upper choice is faster there.
        resolution: the search ends when the interval is within this share of its lower end.

    Returns:
        The interval: the last size where the lower choice was kept, the first of the upper.
        One change is assumed between them (Faraj 2006, §4.1.1.4).
    """
    while high - low > max(1, low * resolution):
        middle = max(low + 1, min(high - 1, round(math.sqrt(max(low, 1) * high))))
        if above_wins(middle):
            high = middle
        else:
            low = middle
    return low, high
