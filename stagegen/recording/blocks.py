"""The patterns of a recording: the blocks of its collectives whose blocks differ in length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from stagegen.patterns import COLLECTIVES, MATRIX, Pattern
from stagegen.recording.functions import BLOCKING, arguments_of, collective_of
from stagegen.recording.model import IN_PLACE, SENDS, Array, Rank, Recording
from stagegen.recording.tables import Table, tables_of


@dataclass(frozen=True)
class Blocks:
    """What a recording tells of blocks.

    Attributes:
        patterns: the distinct ones of each collective, call site and communicator, exactly; in
            the order of their first calls on each communicator.
        unknown: how many calls lack the counts of some rank's blocks.
        unmatched: how many calls, of whatever collective, lack some rank.
    """

    patterns: tuple[Pattern, ...]
    unknown: int
    unmatched: int


def blocks_of(recording: Recording) -> Blocks:
    """Return the patterns of a recording's calls, blocking ones and others."""
    found: dict[tuple[Any, ...], tuple[Pattern, list[int]]] = {}
    rows = _Rows({})
    unknown = unmatched = 0
    for table in tables_of(recording):
        unmatched += table.unmatched
        if not table.columns or table.communicator.remote:
            continue
        numbers: dict[tuple[str, bool], int] = {}
        for call in range(len(table.columns[0][1])):
            event = table.columns[0][1][call]
            collective, mode = collective_of(recording.functions[event["function"]])
            if collective not in COLLECTIVES:
                continue
            kind = collective, mode == BLOCKING
            number = numbers.get(kind, 0)
            numbers[kind] = number + 1
            sizes = rows.sizes(table, call, collective)
            if sizes is None:
                unknown += 1
                continue
            site = table.columns[0][0].sites[event["site"]].name
            key = kind, site, table.place, sizes
            if key not in found:
                found[key] = _pattern(f"{collective}-{len(found)}", *kind, sizes, site, table), []
            found[key][1].append(number)
    patterns = tuple(replace(one, calls=tuple(calls)) for one, calls in found.values())
    return Blocks(patterns, unknown, unmatched)


def _pattern(
    name: str,
    collective: str,
    is_blocking: bool,
    sizes: tuple[tuple[int, ...], ...],
    site: str,
    table: Table,
) -> Pattern:
    of = table.communicator
    return Pattern(
        name, collective, sizes, site, of.members, ordinal=of.ordinal, is_blocking=is_blocking
    )


@dataclass(frozen=True)
class _Rows:
    """Finds the rows of patterns; each is made once, as most calls have the counts of earlier ones.

    Attributes:
        made: by rank, place of the counts, elements and bytes; None if counts were not kept.
    """

    made: dict[tuple[int, int, int, int], tuple[int, ...] | None]

    def sizes(self, table: Table, call: int, collective: str) -> tuple[tuple[int, ...], ...] | None:
        """Return the bytes of the blocks of a call; None if they were not kept."""
        found = list(self._rows(table, call, collective))
        if any(row is None or len(row) != len(table.columns) for row in found):
            return None
        return tuple(row for row in found if row is not None)

    def _rows(self, table: Table, call: int, collective: str) -> Iterator[tuple[int, ...] | None]:
        """Yield the rows of a call's pattern; None for one that is not known."""
        if collective in MATRIX:
            yield from self._of_pairs(table, call)
        else:
            side = "received" if "recvcounts" in arguments_of(collective) else "sent"
            yield self._known(table, call, side)

    def _of_pairs(self, table: Table, call: int) -> Iterator[tuple[int, ...] | None]:
        """Yield what each rank sends; in place it sends as much to one as it receives from it."""
        for rank, events in table.columns:
            event = events[call]
            in_place = bool(event["flags"] & IN_PLACE) or not event["flags"] & SENDS
            yield self._bytes(rank, event, "received" if in_place else "sent")

    def _known(self, table: Table, call: int, side: str) -> tuple[int, ...] | None:
        """Return the row of the first rank that has counts: all have them, or the root alone."""
        rows = (self._bytes(rank, events[call], side) for rank, events in table.columns)
        return next((row for row in rows if row is not None), None)

    def _bytes(self, rank: Rank, event: Array, side: str) -> tuple[int, ...] | None:
        place = int(event["send_counts" if side == "sent" else "recv_counts"])
        elements, whole = int(event[side]), int(event[f"{side}_bytes"])
        key = rank.rank, place, elements, whole
        if key not in self.made:
            self.made[key] = _row(rank.counts_at(place), elements, whole)
        return self.made[key]


def _row(counts: tuple[int, ...] | None, elements: int, whole: int) -> tuple[int, ...] | None:
    """Return the bytes of blocks with these numbers of elements; None if they were not kept."""
    if counts is None:
        return None
    # `whole` is of all elements, which are those of the counts.
    each = whole // (elements or sum(counts)) if whole else 0
    return tuple(count * each for count in counts)
