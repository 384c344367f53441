"""Reads the tables of an alltoall in phases: the steps of every rank, each with its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stagegen.audit.tables import NOBODY, Record, Tables
from stagegen.errors import ScheduleError


class TokenEnd(NamedTuple):
    """A record of tokens[]."""

    peer: int
    other_phase: int
    windows: int


@dataclass(frozen=True)
class Step:
    """A record of steps[], with its dummies, its place and its tokens.

    Attributes:
        rank: whose step it is.
        phase: of the schedule.
        to: the rank that it sends to, or `NOBODY`; so for all other ends.
        source: the rank that it receives from.
        dummy_to: the rank that it sends a dummy to.
        dummy_source: the rank that it receives a dummy from.
        place: of its message among those of the phase; None without such a table.
        awaited: tokens that its send waits for.
        owed: tokens that it gives.
    """

    rank: int
    phase: int
    to: int
    source: int
    dummy_to: int
    dummy_source: int
    place: int | None
    awaited: Sequence[TokenEnd] = ()
    owed: Sequence[TokenEnd] = ()


def read_steps(tables: Tables, ranks: int) -> list[Step]:
    """Return every step, by ranks and phases.

    Raises:
        ScheduleError: a table does not have its records, or does not divide the other.
    """
    rows = tables.records_of("steps", "aapc_step", 5)
    first = tables.divided("first_step", ranks, len(rows), "steps")
    dummies: Sequence[Record] = [(NOBODY, NOBODY)] * len(rows)
    if "dummies" in tables.records:
        dummies = tables.records_of("dummies", "aapc_dummies", 2)
    places: Sequence[int | None] = [None] * len(rows)
    if "places" in tables.arrays:
        places = tables.array("places") if rows else ()
    for name, found in (("dummies", dummies), ("places", places)):
        if len(found) != len(rows):
            raise ScheduleError(f"{name}[] has {len(found)} records for {len(rows)} steps")
    tokens: Sequence[TokenEnd] = ()
    first_token: Sequence[int] = [0] * (ranks + 1)
    if "tokens" in tables.records:
        tokens = [TokenEnd(*row) for row in tables.records_of("tokens", "aapc_token", 3)]
        first_token = tables.divided("first_token", ranks, len(tokens), "tokens")
    records = list(zip(rows, dummies, places, strict=True))
    return [
        step
        for rank in range(ranks)
        for step in _steps(
            rank,
            records[first[rank] : first[rank + 1]],
            tokens[first_token[rank] : first_token[rank + 1]],
        )
    ]


def _steps(
    rank: int,
    records: Sequence[tuple[Record, Record, int | None]],
    tokens: Sequence[TokenEnd],
) -> Iterator[Step]:
    """Yield the steps of a rank, each with its part of the rank's tokens."""
    at = 0
    for (phase, to, source, awaited, owed), (dummy_to, dummy_source), place in records:
        if min(awaited, owed) < 0 or at + awaited + owed > len(tokens):
            raise ScheduleError(
                f"steps[], rank {rank}, phase {phase}: {awaited} awaited and {owed} owed tokens "
                f"are not among the rank's {len(tokens)}"
            )
        middle, end = at + awaited, at + awaited + owed
        yield Step(
            rank,
            phase,
            to,
            source,
            dummy_to,
            dummy_source,
            place,
            tokens[at:middle],
            tokens[middle:end],
        )
        at = end
    if at != len(tokens):
        raise ScheduleError(f"steps[], rank {rank}: {at} of its {len(tokens)} tokens[] have a step")
