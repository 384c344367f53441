"""Performance guidelines: no collective is slower than others that do the same together.

Träff, Gropp and Thakur 2010, *Self-Consistent MPI Performance Guidelines*; as tests: Hunold,
Carpen-Amarie, Lübbe and Träff 2016, *Automatic Verification of Self-Consistent MPI Performance
Guidelines* (PGMPI).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import mul, truediv

from docs.tools.bench.rows import Row
from stagegen.catalogue import load_collectives

COLLECTIVES = {one.name: one for one in load_collectives()}

#: A guideline is broken by more than this share of the right side, and by more than the noise.
TOLERANCE = 0.03

TRAEFF = "Träff, Gropp and Thakur 2010"
PGMPI = "Hunold et al. 2016 (PGMPI)"


@dataclass(frozen=True)
class Part:
    """A collective on the right side.

    Attributes:
        collective: which one.
        size: its bytes for each byte of the left side: a number, ``p`` or ``1/p``, p being the
            number of ranks.
    """

    collective: str
    size: str = "1"

    def bytes(self, size: int, ranks: int) -> int | None:
        """Return its size for one of the left side, as it counts; None if that is no number."""
        if not COLLECTIVES[self.collective].has_data:
            return 0
        factor = {"p": Fraction(ranks), "1/p": Fraction(1, ranks), "1": Fraction(1)}[self.size]
        scaled = size * factor
        return int(scaled) if scaled.denominator == 1 else None


@dataclass(frozen=True)
class Guideline:
    """The left side takes no longer than all parts of the right side together."""

    left: str
    right: tuple[Part, ...]
    reference: str

    @property
    def name(self) -> str:
        """Such as ``allreduce(n) ≼ reduce(n) + bcast(n)``."""
        sizes = {"1": "n", "p": "p·n", "1/p": "n/p"}
        right = " + ".join(f"{part.collective}({sizes[part.size]})" for part in self.right)
        return f"{self.left}(n) ≼ {right}"


def _of(left: str, *right: tuple[str, str], reference: str = TRAEFF) -> Guideline:
    return Guideline(left, tuple(Part(*one) for one in right), reference)


#: n counts as the left side's collective does (docs/interfaces.md), so p·n is the whole of what
#: n is each rank's share of.
GUIDELINES = (
    _of("allgather", ("gather", "1"), ("bcast", "p")),
    _of("allgather", ("allgatherv", "p")),
    _of("allgather", ("alltoall", "1")),
    _of("allgather", ("allreduce", "p")),
    _of("allreduce", ("reduce", "1"), ("bcast", "1")),
    _of("allreduce", ("reduce_scatter_block", "1/p"), ("allgather", "1/p")),
    _of("allreduce", ("reduce_scatter", "1"), ("allgatherv", "1"), reference=PGMPI),
    _of("alltoall", ("alltoallv", "1")),
    _of("bcast", ("scatter", "1/p"), ("allgather", "1/p")),
    _of("gather", ("allgather", "1")),
    _of("gather", ("reduce", "p"), reference=PGMPI),
    _of("reduce", ("allreduce", "1")),
    _of("reduce", ("reduce_scatter_block", "1/p"), ("gather", "1/p")),
    _of("reduce", ("reduce_scatter", "1"), ("gather", "1/p"), reference=PGMPI),
    _of("reduce_scatter", ("allreduce", "1")),
    _of("reduce_scatter", ("reduce", "1"), ("scatter", "1/p"), reference=PGMPI),
    _of("reduce_scatter_block", ("reduce", "p"), ("scatter", "1")),
    _of("reduce_scatter_block", ("reduce_scatter", "p")),
    _of("reduce_scatter_block", ("allreduce", "p"), reference=PGMPI),
    _of("scatter", ("bcast", "p")),
)

#: What a barrier may not take longer than: others that no rank leaves before all have entered,
#: with a byte of data.
BARRIER = (("allreduce",), ("allgather",), ("alltoall",), ("reduce", "bcast"), ("gather", "bcast"))


@dataclass(frozen=True)
class Comparison:
    """A guideline at one size, with both sides in seconds.

    Attributes:
        guideline: in words.
        size: bytes of the left side.
        left: its row.
        right: the rows of the right side, each with how many times it counts.
    """

    guideline: str
    size: int
    left: Row
    right: tuple[tuple[Row, int], ...]

    @property
    def right_seconds(self) -> tuple[float, float, float]:
        """Median and ends of the interval of the right side, of all its parts together."""
        return (
            sum(times * row.tuned.median for row, times in self.right),
            sum(times * row.tuned.low for row, times in self.right),
            sum(times * row.tuned.high for row, times in self.right),
        )

    @property
    def ratio(self) -> float:
        """Left over right."""
        return self.left.tuned.median / self.right_seconds[0]

    @property
    def is_below_bound(self) -> bool:
        """Whether the right side takes less than the left side's lower bound, so no routine can.

        A link of the lab has a full token bucket when a call begins. So several short calls,
        measured one by one, move more bytes than the rate says.
        """
        return self.right_seconds[0] < (self.left.bound or 0.0)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of both sides."""
        return (self.left, *(row for row, _ in self.right))

    @property
    def is_suspect(self) -> bool:
        """Whether the left side is slower by more than the tolerance, and the intervals apart.

        Where an interval is unknown, nobody can tell.
        """
        _, _, high = self.right_seconds
        known = all(row.tuned.interval for row in self.rows)
        return known and self.ratio > 1 + TOLERANCE and self.left.tuned.low > high

    @property
    def launches(self) -> tuple[float, ...]:
        """Left over right in each further launch, empty where a side was in none, or in others."""
        known = [row.launches for row in self.rows if row.launches]
        if len(known) < len(self.rows) or len({one.run for one in known}) > 1:
            return ()
        left, *right = (one.tuned for one in known)
        times = [count for _, count in self.right]
        sums = (sum(map(mul, times, seconds)) for seconds in zip(*right, strict=True))
        return tuple(map(truediv, left, sums))

    @property
    def judged_ratio(self) -> float:
        """What counts: the median of further launches, or the job's where there are none."""
        return statistics.median(self.launches) if self.launches else self.ratio

    @property
    def is_broken(self) -> bool:
        """Whether it is suspect, and further launches say so, too, where there are some.

        They do if the left side is slower in all of them, and by more than the tolerance in the
        median.
        """
        in_all = all(ratio > 1 for ratio in self.launches)
        return self.is_suspect and in_all and self.judged_ratio > 1 + TOLERANCE


@dataclass(frozen=True)
class Verdict:
    """What was seen of all guidelines on a cluster.

    Attributes:
        compared: how many comparisons were made.
        suspects: those that one job shows as violations, the worst first.
        missing: guidelines that could not be compared at all, in words.
    """

    compared: int
    suspects: tuple[Comparison, ...]
    missing: tuple[str, ...]

    @property
    def broken(self) -> tuple[Comparison, ...]:
        """The violations, the worst first."""
        return tuple(one for one in self.suspects if one.is_broken)


def verdict(rows: Iterable[Row], ranks: int) -> Verdict:
    """Compare what can be compared among the tuned times of one cluster.

    Args:
        rows: of all collectives that were measured.
        ranks: of the cluster.
    """
    table = {(row.collective, row.size): row for row in rows}
    compositions = list(_compositions(table, ranks))
    seen = {one.guideline for one in compositions}
    everything = [*compositions, *_within(table)]
    suspects = sorted((one for one in everything if one.is_suspect), key=lambda one: -one.ratio)
    names = [*(guideline.name for guideline in GUIDELINES), *map(_barrier_name, BARRIER)]
    missing = tuple(name for name in names if name not in seen)
    return Verdict(len(everything), tuple(suspects), missing)


def _compositions(table: Mapping[tuple[str, int], Row], ranks: int) -> Iterator[Comparison]:
    for guideline in GUIDELINES:
        for (name, size), left in table.items():
            if name == guideline.left:
                sizes = ((part.collective, part.bytes(size, ranks)) for part in guideline.right)
                right = [table[key] for key in sizes if key in table]  # type: ignore[index]
                if len(right) == len(guideline.right):
                    yield Comparison(guideline.name, size, left, tuple((row, 1) for row in right))
    for names in BARRIER:
        right = [table[name, 1] for name in names if (name, 1) in table]
        if ("barrier", 0) in table and len(right) == len(names):
            left = table["barrier", 0]
            yield Comparison(_barrier_name(names), 0, left, tuple((row, 1) for row in right))


def _barrier_name(names: tuple[str, ...]) -> str:
    return f"barrier ≼ {' + '.join(f'{name}(1)' for name in names)}"


def _within(table: Mapping[tuple[str, int], Row]) -> Iterator[Comparison]:
    """Yield each size of a collective against longer ones, and against shorter ones repeated."""
    for (name, size), left in table.items():
        for (other, bytes_), row in table.items():
            if other != name or 0 in (size, bytes_):
                continue
            if bytes_ > size:
                yield Comparison(f"{name}(n) ≼ {name}({bytes_})", size, left, ((row, 1),))
            elif bytes_ < size and size % bytes_ == 0:
                times = size // bytes_
                what = f"{name}(n) ≼ {times} × {name}(n/{times})"
                yield Comparison(what, size, left, ((row, times),))
