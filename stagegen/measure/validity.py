"""The records of a log that still count after routines have changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from stagegen.measure.records import Candidate

#: The key in a log's header, and the kind of a record that replaces it from there on: the hash of
#: each routine by its full name, such as ``alltoall/ring``.
ROUTINES = "routines"


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> frozenset[str]:
    """Return the full names of the routines that are gone or have changed."""
    return frozenset(name for name, value in before.items() if now.get(name) != value)


def last_routines(header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> Any:
    """Return the hashes that were written last; None in an old log without any."""
    hashes = header.get(ROUTINES)
    for record in records:
        if record["kind"] == ROUTINES:
            hashes = record[ROUTINES]
    return hashes


def still_valid(
    header: Mapping[str, Any], records: Iterable[Mapping[str, Any]], now: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what a log says of routines that are today what they were when it was written.

    A routine that was changed and changed back keeps its first records.

    Args:
        header: of the log; it holds the hashes that its first records were made with.
        records: the others; those of kind ``routines`` hold the hashes from there on.
        now: the hashes of today.
    """
    valid: list[dict[str, Any]] = []
    other = changed(header[ROUTINES], now)
    for record in records:
        if record["kind"] == ROUTINES:
            other = changed(record[ROUTINES], now)
        elif left := _without(record, other):
            valid.append(left)
    return valid


def _without(record: Mapping[str, Any], names: Collection[str]) -> dict[str, Any] | None:
    """Return what a record says of other routines than these; None if that is nothing."""
    if not names or "collective" not in record:
        return dict(record)
    collective = record["collective"]
    if record["kind"] != "measurement":
        return None if _needs(collective, record["routine"], names) else dict(record)
    answers = record["seconds"]
    left = {spec: t for spec, t in answers.items() if not _needs(collective, spec, names)}
    return {**record, "seconds": left} if left else None


def _needs(collective: str, spec: str, names: Collection[str]) -> bool:
    """Tell whether a candidate is one of these routines, or has one of them as a part."""
    candidate = Candidate.from_spec(spec)
    return f"{collective}/{candidate.algorithm}" in names or any(
        _needs(part.collective, part.candidate.spec, names) for part in candidate.bound
    )
