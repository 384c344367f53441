"""The algorithms that candidates need; a measuring program has only these."""

from __future__ import annotations

from collections.abc import Iterable

from stagegen.catalogue import Algorithm, Catalogue
from stagegen.measure.records import Candidate


def algorithms_used(
    catalogue: Catalogue, candidates: Iterable[tuple[str, Candidate]]
) -> list[Algorithm]:
    """Return the algorithms of candidates and of their parts.

    Args:
        catalogue: to search.
        candidates: each with its collective.

    Raises:
        InputError: the catalogue lacks one of them.
    """
    pairs = set(candidates)
    pairs |= {(part.collective, part.candidate) for _, one in pairs for part in one.bound}
    return [catalogue.find(collective, one.algorithm) for collective, one in sorted(pairs)]
