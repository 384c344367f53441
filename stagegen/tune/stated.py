"""What a tuning within a budget says at its end: what may be lost at each size, and over all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from stagegen.tune.decision import Estimate, Spending, Table
from stagegen.tune.loss import weighted_mean
from stagegen.tune.purse import Purse
from stagegen.tune.subject import Subject


def estimated(subject: Subject) -> Callable[[Table], Table]:
    """Return a function that adds to a table what its choices may lose at each size."""

    def add(table: Table) -> Table:
        stakes = subject.search.stakes(table.communicator)
        sizes = sorted({*subject.plan.sizes, *subject.search.points})
        found = (stakes.estimate(size, table.choice(size)) for size in sizes)
        return replace(table, estimates=tuple(map(_rounded, found)))

    return add


def spending_of(tables: Sequence[Table], purse: Purse) -> Spending:
    """Return what was spent, and what may have been lost over all tables.

    Losses are weighed as in :mod:`stagegen.tune.loss`: sizes by their octaves, and all tables
    alike.
    """
    logs = [log for table in tables if (log := _log_of(table.estimates)) is not None]
    unknown = sum(one.loss is None for table in tables for one in table.estimates)
    loss = round(math.expm1(math.fsum(logs) / len(logs)), 4) if logs else None
    return Spending(purse.total, round(purse.spent, 3), loss, unknown)


def _log_of(estimates: Sequence[Estimate]) -> float | None:
    """Return the logarithm of 1 plus the mean loss of a table; None if no loss is known."""
    known = {one.size: math.log1p(one.loss) for one in estimates if one.loss is not None}
    return weighted_mean(known) if known else None


def _rounded(estimate: Estimate) -> Estimate:
    return replace(estimate, loss=None if estimate.loss is None else round(estimate.loss, 4))
