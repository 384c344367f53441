"""Which candidates may serve which kinds of communicators, whole compositions included."""

from __future__ import annotations

from collections.abc import Mapping

from stagegen.catalogue import Algorithm, Catalogue
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import algorithms_of, handles
from stagegen.tune.rules import eligible


class Serving:
    """Answers for the algorithms of a catalogue; an algorithm that it lacks may serve nothing.

    Args:
        catalogue: all algorithms.
    """

    def __init__(self, catalogue: Catalogue):
        self._known = {algorithm.full_name: algorithm for algorithm in catalogue.algorithms}

    def __call__(self, collective: str, kind: str, candidate: Candidate) -> bool:
        """Whether a candidate of a collective may serve a kind of communicators."""
        algorithms = self._algorithms(collective, candidate)
        return bool(algorithms) and all(eligible(kind, algorithm) for algorithm in algorithms)

    def handles(self, collective: str, candidate: Candidate, size: int, ranks: int) -> bool:
        """Whether a candidate can do a message of ``size`` bytes on ``ranks`` ranks."""
        if not self._algorithms(collective, candidate):
            return False
        return handles(candidate, size, ranks, self._of(collective, candidate))

    def _of(self, collective: str, candidate: Candidate) -> Mapping[str, Algorithm]:
        """Return all algorithms by full name, and the candidate's own also by its name."""
        own = self._known.get(f"{collective}/{candidate.algorithm}")
        return {**self._known, **({own.name: own} if own else {})}

    def _algorithms(self, collective: str, candidate: Candidate) -> tuple[Algorithm, ...]:
        """Return the algorithms of a candidate; none if one is unknown."""
        try:
            return algorithms_of(candidate, self._of(collective, candidate))
        except KeyError:
            return ()
