"""The records of a log that still count after routines have changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
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
    """Return the records of a log without their parts on routines that changed later.

    Args:
        header: of the log; it holds the hashes that its first records were made with.
        records: the others; those of kind ``routines`` hold the hashes from there on.
        now: the hashes of today.
    """
    valid: list[dict[str, Any]] = []
    hashes: Mapping[str, str] = header[ROUTINES]
    for record in records:
        if record["kind"] == ROUTINES:
            valid = list(_without(valid, changed(hashes, record[ROUTINES])))
            hashes = record[ROUTINES]
        else:
            valid.append(dict(record))
    return list(_without(valid, changed(hashes, now)))


def _without(records: Iterable[dict[str, Any]], names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the parts of records on other routines than these."""
    for record in records:
        if not names or record["kind"] == "session":
            yield record
        elif record["kind"] == "measurement":
            collective, answers = record["collective"], record["seconds"]
            left = {s: t for s, t in answers.items() if not _needs(collective, s, names)}
            if left:
                yield {**record, "seconds": left}
        elif not _needs(record["collective"], record["routine"], names):
            yield record


def _needs(collective: str, spec: str, names: Collection[str]) -> bool:
    """Tell whether a candidate is one of these routines, or has one of them as a part."""
    candidate = Candidate.from_spec(spec)
    return f"{collective}/{candidate.algorithm}" in names or any(
        _needs(part.collective, part.candidate.spec, names) for part in candidate.bound
    )
