"""One of the searches that share a budget, and what knowing more of its sizes is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stagegen.measure.records import Candidate
from stagegen.tune.decision import Table
from stagegen.tune.loss import weights
from stagegen.tune.plan import Plan
from stagegen.tune.search import Search

#: A look goes beyond the largest size so far by at most this factor, or to the next size.
REACH = 8


@dataclass
class Subject:
    """A search within a budget.

    Attributes:
        search: of a collective on a communicator.
        collective: which one.
        plan: of the search.
        hints: returns what other searches say of its candidates.
        first: the search of the collective's first communicator; None if that is this one.
        is_part: whether it only serves parts of what a program calls: then it has looks, and no
            launches.
        costs: the seconds that looks took, by size.
        thrifty: whether its last look tuned the parameters of few algorithms only.
        worths: what may be lost at each size that is pending; None until it is known anew.
        longer: where more bytes take less time, as :meth:`gains_of_longer` says it; likewise.
    """

    search: Search
    collective: str
    plan: Plan
    hints: Callable[[], Mapping[int, tuple[Candidate, ...]]]
    first: Subject | None = None
    is_part: bool = False
    costs: dict[int, float] = field(default_factory=dict)
    thrifty: bool = False
    worths: dict[int, float] | None = None
    longer: Mapping[int, float] | None = None

    def forget(self) -> None:
        """Find out anew what is pending, as there was a look."""
        self.worths = self.longer = None

    def pending(self) -> dict[int, float]:
        """Return the worth of knowing each size that is pending."""
        if self.worths is None:
            sizes = self.search.pending()
            table = self.choices() if sizes else None
            stakes = self.search.stakes(self.plan.kinds[0])
            self.worths = {
                size: self.weight(size) * math.log(stakes.factor(size, table.choice(size)))
                for size in sizes
                if table
            }
        return self.worths

    def gains_of_longer(self) -> Mapping[int, float]:
        """Return the sizes where more bytes take less time, and by which factor at the most."""
        if self.longer is None:
            self.longer = self.search.gains_of_longer()
        return self.longer

    def is_near(self, size: int) -> bool:
        """Whether smaller sizes tell enough to look at one.

        Without them, all candidates would be looked at with all values of their parameters, and
        where calls are long that takes as long as anything. So the first look is at the smallest
        size, and later ones are at most :data:`REACH` times beyond the largest, or at the next.
        """
        known = [s for s in self.search.points if s in self.plan.sizes]
        largest = max(known, default=0)
        after = next((s for s in self.plan.sizes if s > largest or not known), size)
        return size <= max(after, REACH * largest)

    def weight(self, size: int) -> float:
        """Return the share of the octaves of all sizes that one stands for."""
        found = weights({*self.plan.sizes, size})
        return found[size] / (sum(found.values()) or 1.0)

    def choices(self) -> Table:
        """Return the choices by what is known so far, for the first kind of tables."""
        return self.search.outcome(final=True).tables[0]
