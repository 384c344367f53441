"""Made-up rows of the benchmark."""

from __future__ import annotations

from docs.tools.bench.families import Entrant, Meeting
from docs.tools.bench.rows import Row
from stagegen.measure.statistics import Summary


def around(seconds: float, noise: float = 0.01) -> Summary:
    """A sample whose interval is within so much of its median."""
    return Summary(seconds, seconds * (1 - noise), seconds * (1 + noise), 9)


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
    aapc = Entrant("aapc_receiver", around(0.5 * ratio), ratio, (0.5 * ratio,))
    other = Entrant("ring", around(0.5), 1.0, (0.5,))
    return Meeting(size, aapc, other, around(ratio, noise))
