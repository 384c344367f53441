"""In a job on a part of the cluster: which sizes a choice serves beyond the last look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from stagegen.tune.choose import Samples, median
from stagegen.tune.decision import NATIVE_CANDIDATE, Rule

#: A routine goes on at larger sizes if its time is at most this factor above the bound: its bytes
#: take most of the time, and nothing can be faster by more than this factor.
NEAR_BOUND = 1.5


def within_sight(
    rules: tuple[Rule, ...],
    samples: Mapping[int, Samples],
    sizes: Collection[int],
    bound: Callable[[int], float],
) -> tuple[Rule, ...]:
    """Return the rules, with the native routine at larger sizes of which no look tells anything.

    A budget may have had no time for looks at them. The native routine is another one for long
    messages than for short ones. A routine that led with few bytes may be many times slower than it
    with more. So the routine goes on only if its time is near the bound (:data:`NEAR_BOUND`).

    Args:
        rules: by ascending size.
        samples: by size, of the candidates that may serve; at least one size.
        sizes: those that were to be looked at.
        bound: the lower bound in seconds for a size.
    """
    largest, last = max(samples), rules[-1].candidate
    if max(sizes) <= largest or last == NATIVE_CANDIDATE:
        return rules
    if median(samples[largest][last]) <= NEAR_BOUND * bound(largest):
        return rules
    return (*rules, Rule(largest + 1, NATIVE_CANDIDATE))
