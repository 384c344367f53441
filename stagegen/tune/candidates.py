"""Candidates of one algorithm: its parameters with the values that are worth a try."""

from __future__ import annotations

from collections.abc import Iterator

from stagegen.measure.records import Candidate
from stagegen.repository import Algorithm, Parameter


def default_candidate(algorithm: Algorithm) -> Candidate:
    """Return the algorithm with the default of each parameter."""
    pairs = ((parameter.name, parameter.default) for parameter in algorithm.parameters)
    return Candidate(algorithm.name, tuple(sorted(pairs)))


def with_value(candidate: Candidate, name: str, value: int) -> Candidate:
    """Return the candidate with another value of one parameter."""
    values = {**dict(candidate.parameters), name: value}
    return Candidate(candidate.algorithm, tuple(sorted(values.items())))


def at_size(algorithm: Algorithm, candidate: Candidate, size: int) -> Candidate:
    """Return the same candidate with those of equal values that are tried at this size."""
    for parameter in algorithm.parameters:
        values = useful_values(parameter, size)
        if dict(candidate.parameters)[parameter.name] not in values:
            candidate = with_value(candidate, parameter.name, values[-1])
    return candidate


def variants(algorithm: Algorithm) -> Iterator[Candidate]:
    """Yield the candidates to be checked: the default, and every value of every parameter."""
    default = default_candidate(algorithm)
    yield default
    for parameter in algorithm.parameters:
        for value in parameter.values:
            candidate = with_value(default, parameter.name, value)
            if candidate != default:
                yield candidate


def useful_values(parameter: Parameter, size: int) -> list[int]:
    """Return the values that differ at this size.

    Of numbers of bytes that cover a message whole it is the least. What other parameters
    count has nothing to do with the size.
    """
    if not parameter.in_bytes:
        return list(parameter.values)
    smaller = [value for value in parameter.values if value < size]
    covering = [value for value in parameter.values if value >= size]
    return smaller + covering[:1]
