"""Made-up rows of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from docs.tools.bench.families import Entrant, Meeting
from docs.tools.bench.rows import Launches, Row, Time


def around(seconds: float, noise: float = 0.01) -> Time:
    """A median whose interval is within so much of it."""
    return Time(seconds, (seconds * (1 - noise), seconds * (1 + noise)))


def row(
    collective: str, size: int, speedup: float = 2, over: float = 1.1, bound: float | None = 0.5
) -> Row:
    """A row by its speed-up, and by how many times 0.5 seconds it takes."""
    tuned = 0.5 * over
    return Row(collective, size, around(tuned * speedup), around(tuned), bound, "some")


def timed(collective: str, size: int, seconds: float, noise: float = 0.01) -> Row:
    """A row by what the tuned call takes."""
    return Row(collective, size, around(2 * seconds), around(seconds, noise), 0.5, "some")


def meeting(size: int, ratio: float, noise: float = 0.01) -> Meeting:
    """AAPC over what knows no topology."""
    return Meeting(
        size, Entrant("aapc_receiver", ratio), Entrant("ring", 1.0), around(ratio, noise)
    )


def carried(one: Row) -> Row:
    """A row that only a page still has: its intervals are lost."""
    return replace(one, native=Time(one.native.median, None), tuned=Time(one.tuned.median, None))


def launched_again(
    one: Row, native: Sequence[float], tuned: Sequence[float], run: str = "a"
) -> Row:
    """A row with the medians of further launches."""
    return replace(one, launches=Launches(run, tuple(native), tuple(tuned)))
