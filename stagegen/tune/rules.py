"""From samples to rules: which candidates serve which sizes, and their alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from stagegen.catalogue import Algorithm
from stagegen.catalogue.formula import NOTHING
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import algorithms_of
from stagegen.tune.choose import Samples, choose_all, median
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import HOSTS, NATIVE_CANDIDATE, ONE_HOST, OTHER, Rule
from stagegen.tune.field import Sample

#: The most alternatives of a rule, besides the native routine.
ALTERNATIVES = 3

#: Conditions on calls or ranks that can differ among the calls that one rule serves.
_UNSEEN = frozenset({"commutative", "leaders", "power_of_two", "sites", "switches"})


def eligible(kind: str, algorithm: Algorithm) -> bool:
    """Whether an algorithm can serve the communicators of a kind of tables."""
    if kind in (ONE_HOST, OTHER):
        return not algorithm.topology_specific
    return kind != HOSTS or not algorithm.has_tables or algorithm.serves_other_hosts


def make_rules(
    samples: Mapping[int, Samples],
    algorithms: Mapping[str, Algorithm],
    gain: float,
    crossovers: Crossovers | None,
) -> Iterator[Rule]:
    """Yield the rules for the measured sizes, with their alternatives.

    Args:
        samples: by size, the samples of the candidates that may serve.
        algorithms: those of the candidates, as for :func:`stagegen.tune.candidates.algorithms_of`.
        gain: smaller differences do not count.
        crossovers: finds where the choice changes; if None, it changes at a measured size.

    Raises:
        MeasurementError: a duel failed, or the log lacks it.
    """
    if not samples:
        return
    choices = choose_all(samples, gain)
    if crossovers:
        choices = crossovers.reconsidered(choices, samples)
    rules = crossovers.rules(choices, samples) if crossovers else _at_sizes(choices)
    for rule in rules:
        last = _last_size(rule, choices)
        everyone = _with_ruled_out(samples, last, algorithms)
        yield replace(rule, alternatives=alternatives(rule.candidate, everyone, algorithms))


def _with_ruled_out(
    samples: Mapping[int, Samples], size: int, algorithms: Mapping[str, Algorithm]
) -> Samples:
    """Return the samples of a size, with those of algorithms that were ruled out before it.

    They may be alternatives. For each, the largest smaller size counts; its ratio to the native
    routine is the same as there.
    """
    found = dict(samples[size])
    names = {candidate.algorithm for candidate in found}
    native = median(found[NATIVE_CANDIDATE])
    for smaller in sorted((one for one in samples if one < size), reverse=True):
        ratio = native / median(samples[smaller][NATIVE_CANDIDATE])
        for candidate, sample in samples[smaller].items():
            new = candidate.algorithm not in names and not candidate.bound
            if new and algorithms[candidate.algorithm].handles(size):
                found[candidate] = Sample((ratio * median(sample),), dropped=True)
        names |= {candidate.algorithm for candidate in samples[smaller]}
    return found


def _at_sizes(choices: Mapping[int, Candidate]) -> Iterator[Rule]:
    """Yield rules that begin at the sizes themselves."""
    sizes = list(choices)
    yield Rule(0, choices[sizes[0]])
    for low, high in pairwise(sizes):
        if choices[low] != choices[high]:
            yield Rule(high, choices[high], (low, high))


def _last_size(rule: Rule, choices: Mapping[int, Candidate]) -> int:
    """Return the largest size of a rule: where a wrong choice costs most."""
    sizes = [size for size in choices if size >= rule.first]
    while len(sizes) > 1 and choices[sizes[1]] == rule.candidate:
        sizes.pop(0)
    return sizes[0]


def alternatives(
    chosen: Candidate, samples: Samples, algorithms: Mapping[str, Algorithm]
) -> tuple[Candidate, ...]:
    """Return the next best candidates that are faster than the native routine.

    A candidate that asks for no less than one before it is left out: where that one cannot serve,
    it cannot serve either.
    """
    if chosen == NATIVE_CANDIDATE:
        return ()
    asked = [_asks(algorithms_of(chosen, algorithms))]
    found: list[Candidate] = []
    others = sorted((median(sample), c) for c, sample in samples.items() if c != chosen)
    for _, candidate in others:
        asks = _asks(algorithms_of(candidate, algorithms))
        if candidate == NATIVE_CANDIDATE or len(found) == ALTERNATIVES:
            break
        if not any(before <= asks for before in asked):
            found.append(candidate)
            asked.append(asks)
    return tuple(found)


def _asks(algorithms: Iterable[Algorithm]) -> frozenset[object]:
    """Return all that these ask of a call; the less they ask, the more calls they serve."""
    return frozenset(wish for algorithm in algorithms for wish in _asked_by(algorithm))


def _asked_by(algorithm: Algorithm) -> Iterator[object]:
    numbers = (
        ("from", algorithm.min_bytes),
        ("to", algorithm.max_bytes),
        ("scratch", None if algorithm.scratch == NOTHING else algorithm.scratch),
    )
    yield from {*algorithm.constraints, algorithm.needs} & _UNSEEN
    yield from ((name, value) for name, value in numbers if value)
