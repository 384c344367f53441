"""Rules for shapes that were not measured: where a gain is small, the native routine serves.

A routine's gain over the native one differs from shape to shape: each has its own steps, and its
own numbers of ranks to which these fit well. So a small gain on four hosts may be a loss on three.
A shape that was not measured gets a routine only where the measured one gained much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise

from stagegen.measure.records import Candidate
from stagegen.measure.statistics import launch_ratios
from stagegen.tune.choose import Samples, median
from stagegen.tune.decision import NATIVE_CANDIDATE, Rule, Table

#: The least share of the native routine's time by which a routine must be faster on the measured
#: shape, in each launch, to serve others.
ELSEWHERE_GAIN = 0.15


def elsewhere(table: Table, samples: Mapping[int, Samples], *, one_rule: bool = False) -> Table:
    """Return the table for shapes near to the measured one.

    Between two measured sizes at which routines gain much, rules stay as they are. Where one of the
    two has a small gain, the native routine serves up to the other.

    Args:
        table: of the measured shape.
        samples: by size, its measurements; none if nothing was measured.
        one_rule: whether one rule serves calls of all sizes: then the geometric mean counts.
    """
    if not samples:
        return table
    rules = _one_rule(table, samples) if one_rule else tuple(_rules(table, samples))
    return replace(table, rules=rules)


def _one_rule(table: Table, samples: Mapping[int, Samples]) -> tuple[Rule, ...]:
    """Return the rule for all sizes, if it gains much in the geometric mean of the sizes."""
    (rule,) = table.rules

    def gains(candidate: Candidate) -> bool:
        logarithms = [math.log(_ratio(candidate, size, samples)) for size in samples]
        return sum(logarithms) / len(logarithms) <= math.log(1 - ELSEWHERE_GAIN)

    if not gains(rule.candidate):
        return (Rule(0, NATIVE_CANDIDATE),)
    return (replace(rule, alternatives=tuple(filter(gains, rule.alternatives))),)


def _rules(table: Table, samples: Mapping[int, Samples]) -> Iterator[Rule]:
    """Yield the rules, joined where the native routine serves on."""
    last: Rule | None = None
    for rule in _with_native(table, samples):
        if last is None or last.candidate != rule.candidate or rule.alternatives:
            yield rule
        last = rule


def _with_native(table: Table, samples: Mapping[int, Samples]) -> Iterator[Rule]:
    """Yield rules that ascend from 0; a native one may follow another native one."""

    def gains(candidate: Candidate, size: int) -> bool:
        return _ratio(candidate, size, samples) <= 1 - ELSEWHERE_GAIN

    def kept(rule: Rule, size: int) -> Rule:
        """Return a rule with only those of its alternatives that gain much at a size."""
        left = tuple(one for one in rule.alternatives if gains(one, size))
        return replace(rule, alternatives=left)

    sizes = sorted(samples)
    trusted = {size: gains(table.choice(size), size) for size in sizes}
    first = sizes[0]
    if trusted[first]:
        yield from (kept(rule, first) for rule in table.rules if rule.first <= first)
    else:
        yield Rule(0, NATIVE_CANDIDATE)
    for low, high in pairwise(sizes):
        if trusted[low] and trusted[high]:
            yield from (kept(rule, high) for rule in table.rules if low < rule.first <= high)
        elif trusted[low]:
            yield Rule(low + 1, NATIVE_CANDIDATE, (low, high))
        elif trusted[high]:
            yield replace(kept(table.rule(high), high), first=high, crossover=(low, high))
    if trusted[sizes[-1]]:
        yield from (kept(rule, sizes[-1]) for rule in table.rules if rule.first > sizes[-1])


def _ratio(candidate: Candidate, size: int, samples: Mapping[int, Samples]) -> float:
    """Return a candidate's time over the native one's at the nearest size at which it was timed.

    It is the greatest of the launches' ratios: a gain that some launch did not see is a small one.
    It is 1 if the candidate was timed at no size.
    """
    timed = [one for one, of_size in samples.items() if candidate in of_size]
    away = partial(_octaves, size)
    nearest = min(timed, key=away, default=None)
    if nearest is None:
        return 1.0
    own, native = samples[nearest][candidate], samples[nearest][NATIVE_CANDIDATE]
    ratios = launch_ratios(own.launches, native.launches)
    return max(ratios) if ratios else median(own) / median(native)


def _octaves(size: int, other: int) -> tuple[float, int]:
    """Return how far another size is away; of two equally far ones, the smaller one is nearer."""
    return abs(math.log2((other + 1) / (size + 1))), other
