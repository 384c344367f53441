"""Reads the tables of an alltoall in phases: the steps of every rank, each with its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagegen.audit.c_file import CFile
from stagegen.errors import ScheduleError

NOBODY = -1
Row = Mapping[str, int]

_STEP = [
    ("PHASE", "TO", "FROM", *dummies, *place, *tokens)
    for dummies, place, tokens in (
        ((), (), ()),
        (("DUMMY_TO", "DUMMY_FROM"), (), ()),
        ((), (), ("AWAITED", "OWED")),
        ((), ("PLACE",), ("AWAITED", "OWED")),
    )
]
_TOKEN = [("PEER", "OTHER_PHASE"), ("PEER", "OTHER_PHASE", "WINDOWS")]


@dataclass(frozen=True)
class Step:
    """A row of steps[] with its tokens."""

    rank: int
    fields: Row
    awaited: Sequence[Row] = ()
    owed: Sequence[Row] = ()

    @property
    def phase(self) -> int:
        """The number of its phase."""
        return self.fields["PHASE"]


def read_steps(c_file: CFile, ranks: int) -> list[Step]:
    """Return every step, by ranks and phases.

    Raises:
        ScheduleError: a table does not have its fields, or does not divide the other.
    """
    rows = _rows(c_file, "steps", "step_field", _STEP)
    first = c_file.divided("first_step", ranks, len(rows), "steps")
    has_tokens = bool(rows) and "AWAITED" in rows[0]
    if has_tokens and "tokens" not in c_file.arrays:
        raise ScheduleError("there is no table tokens[]")
    if "tokens" not in c_file.arrays:
        return [
            Step(rank, row) for rank in range(ranks) for row in rows[first[rank] : first[rank + 1]]
        ]
    tokens = _rows(c_file, "tokens", "token_field", _TOKEN)
    first_token = c_file.divided("first_token", ranks, len(tokens), "tokens")
    steps: list[Step] = []
    for rank in range(ranks):
        own = tokens[first_token[rank] : first_token[rank + 1]]
        steps += _with_tokens(rank, rows[first[rank] : first[rank + 1]], own)
    _check_room(c_file, steps, ranks)
    return steps


def _with_tokens(rank: int, rows: Sequence[Row], tokens: Sequence[Row]) -> Iterator[Step]:
    """Yield the steps of a rank, each with its part of the rank's tokens."""
    at = 0
    for row in rows:
        awaited, owed = row["AWAITED"], row["OWED"]
        if min(awaited, owed) < 0 or at + awaited + owed > len(tokens):
            raise ScheduleError(
                f"steps[], rank {rank}, phase {row['PHASE']}: {awaited} AWAITED and {owed} OWED "
                f"tokens are not among the rank's {len(tokens)}"
            )
        middle, at = at + awaited, at + awaited + owed
        yield Step(rank, row, tokens[middle - awaited : middle], tokens[middle:at])
    if at != len(tokens):
        raise ScheduleError(f"steps[], rank {rank}: {at} of its {len(tokens)} tokens[] have a step")


def _check_room(c_file: CFile, steps: Sequence[Step], ranks: int) -> None:
    """Check that the program's arrays of requests are as long as their longest use."""
    owed = [0] * ranks
    for step in steps:
        owed[step.rank] += len(step.owed)
    awaited = max((len(step.awaited) for step in steps), default=0)
    c_file.require(AWAITED_MOST=awaited, OWED_MOST=max(owed, default=0))


def _rows(c_file: CFile, array: str, tag: str, known: Sequence[tuple[str, ...]]) -> list[Row]:
    """Return the records of a table; none if its only one is the row that no rank uses."""
    *names, last = c_file.fields.get(tag, ("",))
    if tuple(names) not in known or last != f"{tag.upper()}S":
        raise ScheduleError(f"enum {tag} does not have the fields of {array}[]")
    numbers, width = c_file.array(array), len(names)
    if len(numbers) % width:
        raise ScheduleError(f"{array}[] has {len(numbers)} numbers, in records of {width}")
    if numbers == (NOBODY,) * width:
        return []
    return [
        dict(zip(names, numbers[i : i + width], strict=True)) for i in range(0, len(numbers), width)
    ]
