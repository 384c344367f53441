"""What one communicator tells about another: the candidates to confirm there.

Communicators that differ in hosts and ranks per host have most of their winners in common. So a
search begins with the winners on the communicator that is nearest in shape, and looks at all
candidates only where these lose.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from stagegen.measure.records import Candidate
from stagegen.tune.choose import Samples, median
from stagegen.tune.decision import NATIVE_CANDIDATE
from stagegen.tune.one_rule import NEARLY, ranked
from stagegen.tune.plan import Outcome

#: How many candidates of a size are passed on.
PASSED_ON = 2


def hints_from(
    found: Outcome, algorithms: Collection[str], *, one_rule: bool = False
) -> Mapping[int, tuple[Candidate, ...]]:
    """Return the candidates to confirm at each size, the best first; native is one of them.

    Args:
        found: for the same collective, on the communicator that is nearest in shape.
        algorithms: the names of the algorithms that can run on the communicator to tune for.
        one_rule: whether one rule serves all sizes. Then the candidates for this rule are passed on
            at each size; with long messages they must win, and with others native may be as fast.
    """
    samples = found.samples
    if one_rule:
        able = [one for one in ranked(samples, NEARLY) if one != NATIVE_CANDIDATE]
        best = _first_of_each(able, algorithms) or (NATIVE_CANDIDATE,)
        short = (best[0], NATIVE_CANDIDATE)
        return {size: best if size == max(samples) else short for size in samples}
    return {size: _best(of_size, algorithms) for size, of_size in samples.items()}


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
