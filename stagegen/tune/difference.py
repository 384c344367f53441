"""Two decision tables side by side: where they choose differently, and what each way costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from stagegen.measure.records import Candidate
from stagegen.tune.decision import Rule, Table
from stagegen.tune.loss import Key, Loss, Measured, Times, lost, total


@dataclass(frozen=True)
class Range:
    """Sizes for which two tables have one choice each.

    Attributes:
        first: the smallest message in bytes.
        last: the largest one, None for no end.
        a: the choice of the first table.
        b: the choice of the second.
        a_in_b: what a's choice costs by the times of b's log; unknown without that log.
        b_in_a: what b's choice costs by the times of a's log.
    """

    first: int
    last: int | None
    a: Candidate
    b: Candidate
    a_in_b: Loss
    b_in_a: Loss


@dataclass(frozen=True)
class Difference:
    """A table of one tuning beside the same table of another.

    Attributes:
        key: collective, kind of communicators, measured ranks and hosts of both.
        ranges: ascending, from 0 bytes without a gap; neighbours differ in a choice.
        a_in_b: what the table of a costs by the times of b's log.
        b_in_a: what the table of b costs by the times of a's log.
    """

    key: Key
    ranges: tuple[Range, ...]
    a_in_b: Loss
    b_in_a: Loss


#: What is known without a log.
NOTHING = Loss({})


@dataclass(frozen=True)
class Side:
    """One of the two tunings.

    Attributes:
        tables: by key.
        times: of its log; None without one.
        measured: the names of the communicators in its log.
    """

    tables: Mapping[Key, Table]
    times: Times | None
    measured: Measured

    def loss(self, key: Key, used: Table, reference: Table) -> Loss:
        """Return what one table costs beside another by the times of this log."""
        name = self.measured.get(key[1:])
        if self.times is None or name is None:
            return NOTHING
        return lost(used.choice, reference.choice, self.times, key[0], name)


def compare(a: Side, b: Side) -> tuple[Difference, ...]:
    """Return the differences of the tables that both have, in the order of the first."""
    return tuple(
        _difference(key, a, b) for key in a.tables if key in b.tables
    )  # fmt: skip


def _difference(key: Key, a: Side, b: Side) -> Difference:
    one, two = a.tables[key], b.tables[key]
    a_in_b, b_in_a = b.loss(key, one, two), a.loss(key, two, one)
    ranges = (
        Range(first, last, *pair, a_in_b.between(first, last), b_in_a.between(first, last))
        for first, last, pair in _common_ranges(one, two)
    )
    return Difference(key, tuple(ranges), a_in_b, b_in_a)


def _common_ranges(
    one: Table, two: Table
) -> Iterator[tuple[int, int | None, tuple[Candidate, Candidate]]]:
    """Yield first and last size of each pair of choices, and the pair."""
    firsts = sorted({rule.first for table in (one, two) for rule in table.rules})
    pairs = [(one.choice(start), two.choice(start)) for start in firsts]
    kept = [i for i, pair in enumerate(pairs) if i == 0 or pair != pairs[i - 1]]
    for place, i in enumerate(kept):
        last = firsts[kept[place + 1]] - 1 if place + 1 < len(kept) else None
        yield firsts[i], last, pairs[i]


def total_of(differences: tuple[Difference, ...]) -> tuple[float | None, float | None]:
    """Return what all tables of a cost in b, and all tables of b in a."""
    return total(d.a_in_b for d in differences), total(d.b_in_a for d in differences)


def table_of_fastest(
    times: Times, key: Key, communicator: str, may_serve: Callable[[Candidate], bool]
) -> Table | None:
    """Return a table for a log, which has none: it chooses the fastest candidate at each size.

    Args:
        times: of the log.
        key: of the table.
        communicator: its name in the log.
        may_serve: whether a candidate may serve this kind of communicators.
    """
    collective, kind, ranks, hosts = key
    sizes = times.sizes(collective, communicator)
    found = [(size, times.fastest(collective, communicator, size, may_serve)) for size in sizes]
    chosen = [(size, candidate) for size, candidate in found if candidate is not None]
    rules = [
        Rule(size if place else 0, candidate)
        for place, (size, candidate) in enumerate(chosen)
        if place == 0 or candidate != chosen[place - 1][1]
    ]
    return Table.exactly(collective, kind, ranks, hosts, tuple(rules)) if rules else None
