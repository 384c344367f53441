"""What one communicator tells about another: the candidates to confirm there.

Communicators that differ in hosts and ranks per host have most of their winners in common. So a
search begins with those of the communicator that is nearest in shape, and looks at all candidates
only where these lose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import log

from stagegen.measure.records import Candidate
from stagegen.tune.choose import Samples, median
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.one_rule import NEARLY, ranked
from stagegen.tune.plan import Outcome
from stagegen.tune.shapes import Shape

#: How many candidates of a size are passed on.
PASSED_ON = 2


@dataclass(frozen=True)
class Known:
    """What was found on a communicator of some shape."""

    shape: Shape
    outcome: Outcome


def hints_from(
    known: Iterable[Known], shape: Shape, algorithms: Collection[str], *, one_rule: bool = False
) -> Mapping[int, tuple[Candidate, ...]]:
    """Return the candidates to confirm at each size, the best first; native is one of them.

    Args:
        known: what was found for the same collective on other communicators, in this order.
        shape: of the communicator to tune for.
        algorithms: the names of those that can run there.
        one_rule: whether one rule serves all sizes. Then what does so is passed on at each; with
            long messages it must win, and with others native may be as fast.
    """
    nearest = min(known, key=lambda one: _distance(one.shape, shape), default=None)
    if nearest is None:
        return {}
    samples = nearest.outcome.samples
    if one_rule:
        able = [one for one in ranked(samples, NEARLY) if one != NATIVE_CANDIDATE]
        best = _first_of_each(able, algorithms) or (NATIVE_CANDIDATE,)
        short = (best[0], NATIVE_CANDIDATE)
        return {size: best if size == max(samples) else short for size in samples}
    return {size: _best(of_size, algorithms) for size, of_size in samples.items()}


def _distance(one: Shape, other: Shape) -> tuple[float, float]:
    """Return how far two shapes are apart: by ratio in hosts, then in ranks per host."""
    per_host = abs(log(one.ranks_per_host / other.ranks_per_host))
    return abs(log(one.hosts / other.hosts)), per_host


def _best(samples: Samples, algorithms: Collection[str]) -> tuple[Candidate, ...]:
    """Return the candidates with the least medians, one of each algorithm."""
    by_time = sorted(samples, key=lambda c: (median(samples[c]), c))
    return _first_of_each(by_time, algorithms)


def _first_of_each(
    candidates: Iterable[Candidate], algorithms: Collection[str]
) -> tuple[Candidate, ...]:
    """Return the first candidates, one of each algorithm that can run."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.algorithm in algorithms and not candidate.bound:
            first.setdefault(candidate.algorithm, candidate)
    return tuple(first.values())[:PASSED_ON]
