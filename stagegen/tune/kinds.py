"""The kinds of tables that one search makes, and the candidates that may serve each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import OWN_TABLES
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import algorithms_of
from stagegen.tune.choose import Samples
from stagegen.tune.field import Field
from stagegen.tune.rules import eligible


@dataclass(frozen=True)
class TableKinds:
    """The kinds of tables of one search.

    Attributes:
        names: the kinds, the most special first.
        known: all algorithms, as :func:`stagegen.tune.candidates.algorithms_of` needs them.
    """

    names: tuple[str, ...]
    known: Mapping[str, Algorithm]

    def may_serve(self, kind: str, candidate: Candidate) -> bool:
        """Whether a candidate, with the routines of its parts, may serve a kind."""
        algorithms = algorithms_of(candidate, self.known)
        return all(eligible(kind, algorithm) for algorithm in algorithms)

    def of(self, kind: str, samples: Samples) -> Samples:
        """Return the samples of those that may serve a kind."""
        return {c: sample for c, sample in samples.items() if self.may_serve(kind, c)}

    def field(self, candidates: Iterable[Candidate]) -> Field:
        """Return the race of these candidates, with a winner for each kind."""
        everyone = tuple(candidates)
        groups = (
            frozenset(candidate for candidate in everyone if self.may_serve(kind, candidate))
            for kind in self.names
        )
        algorithms = {one: algorithms_of(one, self.known) for one in everyone}
        tabled = frozenset(c for c, used in algorithms.items() if any(a.has_tables for a in used))
        own = frozenset(
            c for c, used in algorithms.items() if any(a.needs == OWN_TABLES for a in used)
        )
        return Field(everyone, tuple(group for group in groups if group), tabled, own)
