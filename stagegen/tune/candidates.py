"""Candidates of one algorithm: its parameters with the values that are worth trying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from stagegen.catalogue import Algorithm, Part
from stagegen.measure.records import Candidate

#: The most bytes that a call of a part may have: an int counts them.
INT_MOST = 2**31 - 1


def default_candidate(algorithm: Algorithm) -> Candidate:
    """Return the algorithm with the default of each parameter."""
    pairs = ((parameter.name, parameter.default) for parameter in algorithm.parameters)
    return Candidate(algorithm.name, tuple(sorted(pairs)))


def with_value(candidate: Candidate, name: str, value: int) -> Candidate:
    """Return the candidate with another value of one parameter."""
    values = {**dict(candidate.parameters), name: value}
    return Candidate(candidate.algorithm, tuple(sorted(values.items())))


def at_size(algorithm: Algorithm, candidate: Candidate, size: int, ranks: int) -> Candidate:
    """Return the candidate with each value replaced by the nearest that is tried there.

    The nearest value is the largest one that is not above it. All numbers of bytes that cover the
    message are equal, and one of them is tried.
    """
    for parameter in algorithm.parameters:
        values = parameter.values_at(size, ranks)
        value = dict(candidate.parameters)[parameter.name]
        if value not in values:
            near = [other for other in values if other < value] or values[:1]
            candidate = with_value(candidate, parameter.name, near[-1])
    return candidate


def variants(algorithm: Algorithm, size: int, ranks: int) -> Iterator[Candidate]:
    """Yield candidates of an algorithm: the default, and values of one parameter at a time.

    If the values are a list, these are all; if they are a range, some
    (:func:`stagegen.catalogue.values.sample`).

    Args:
        algorithm: the algorithm.
        size: the largest that is tuned, in bytes.
        ranks: of the communicator.
    """
    default = default_candidate(algorithm)
    yield default
    for parameter in algorithm.parameters:
        for value in parameter.sample_at(size, ranks):
            candidate = with_value(default, parameter.name, value)
            if candidate != default:
                yield candidate


def algorithms_of(
    candidate: Candidate, algorithms: Mapping[str, Algorithm]
) -> tuple[Algorithm, ...]:
    """Return the algorithm of a candidate, and those that serve its parts if it is a composition.

    Args:
        candidate: of a collective.
        algorithms: the collective's own by name, and all that may serve parts by
            ``collective/name``.
    """
    served = (f"{bound.collective}/{bound.candidate.algorithm}" for bound in candidate.bound)
    return (algorithms[candidate.algorithm], *(algorithms[name] for name in served))


def routines_of(collective: str, candidate: Candidate) -> frozenset[tuple[str, str]]:
    """Return the algorithm of a candidate and those of its parts, each with its collective."""
    parts = (routines_of(bound.collective, bound.candidate) for bound in candidate.bound)
    return frozenset({(collective, candidate.algorithm)}).union(*parts)


def part_size(part: Part, size: int, ranks: int) -> int:
    """Return the bytes of a part of a call of ``size`` bytes.

    Elements have the size that ``unit_of`` of drivers/session.c gives them.
    """
    return ceil(part.size.value({"n": size, "p": ranks, "e": 8 if size % 8 == 0 else 1}))


def handles(
    candidate: Candidate, size: int, ranks: int, algorithms: Mapping[str, Algorithm]
) -> bool:
    """Return whether a candidate, and the routines of its parts, can do ``size`` bytes.

    Args as for :func:`algorithms_of`; ``ranks`` is the number of ranks of the communicator.
    """
    own, *served = algorithms_of(candidate, algorithms)
    sizes = [part_size(part, size, ranks) for part in own.parts]
    fit = all(bytes_ <= INT_MOST for bytes_ in sizes)
    # Where the MPI library serves the parts, `served` is empty.
    able = all(one.handles(bytes_) for one, bytes_ in zip(served, sizes, strict=False))
    return own.handles(size) and fit and able
