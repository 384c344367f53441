"""From samples to rules: which candidates serve which sizes, and their alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from stagegen.catalogue import Algorithm
from stagegen.catalogue.formula import NOTHING
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import algorithms_of
from stagegen.tune.choose import Samples, choose, median
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import HOSTS, NATIVE_CANDIDATE, ONE_HOST, OTHER, Rule
from stagegen.tune.duels import Duels

#: The most alternatives of a rule, besides the native routine.
ALTERNATIVES = 3

#: If the native routine always took at least BEYOND_DOUBT times as long as the chosen one, there is
#: no need for a rematch.
BEYOND_DOUBT = 1.5

#: Conditions on calls or ranks that can differ among the calls that one rule serves.
_UNSEEN = frozenset({"commutative", "leaders", "power_of_two"})


def eligible(kind: str, algorithm: Algorithm) -> bool:
    """Whether an algorithm can serve the communicators of a kind of tables."""
    if kind in (ONE_HOST, OTHER):
        return not algorithm.topology_specific
    return kind != HOSTS or not algorithm.has_tables


def make_rules(
    samples: Mapping[int, Samples],
    algorithms: Mapping[str, Algorithm],
    duels: Duels,
    crossovers: Crossovers,
) -> Iterator[Rule]:
    """Yield the rules for the measured sizes, with their alternatives.

    Args:
        samples: at each size, of the candidates that may serve.
        algorithms: of these candidates, as for :func:`stagegen.tune.candidates.algorithms_of`.
        duels: between two of them.
        crossovers: finds where the choice changes.

    Raises:
        MeasurementError: a duel failed, or the log lacks it.
    """
    choices: dict[int, Candidate] = {}
    incumbent: Candidate | None = None
    for size in sorted(samples):
        before = incumbent
        incumbent = choose(samples[size], before, NATIVE_CANDIDATE)
        if not _holds(incumbent, before, samples[size], size, duels):
            incumbent = NATIVE_CANDIDATE
        choices[size] = incumbent
    for rule in crossovers.rules(choices):
        last = _last_size(rule, choices)
        yield replace(rule, alternatives=alternatives(rule.candidate, samples[last], algorithms))


def _holds(
    chosen: Candidate, before: Candidate | None, samples: Samples, size: int, duels: Duels
) -> bool:
    """Whether a choice holds its own against the native routine, measured anew.

    The least of many medians is as often lucky as good. A routine that replaces the native one must
    win a rematch; a routine that stays must only keep up with it.
    """
    native = samples.get(NATIVE_CANDIDATE)
    if native is None or chosen == NATIVE_CANDIDATE:
        return True
    if min(native.seconds) > BEYOND_DOUBT * median(samples[chosen]):
        return True
    if chosen == before:
        return duels.keeps_up(size, chosen, NATIVE_CANDIDATE)
    return duels.is_faster(size, chosen, NATIVE_CANDIDATE)


def _last_size(rule: Rule, choices: Mapping[int, Candidate]) -> int:
    """Return the largest size of a rule: where a wrong choice costs most."""
    sizes = [size for size in choices if size >= rule.start]
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
