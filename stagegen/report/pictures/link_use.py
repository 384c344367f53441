"""How much of each shared link an alltoall uses in each phase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor

from stagegen.schedule import PhaseSchedule
from stagegen.schedule.alltoall.capacity import edge_capacity
from stagegen.topology import Topology


@dataclass(frozen=True)
class LinkUse:
    """A directed edge that several ranks send over.

    Attributes:
        label: the edge.
        load: messages that cross it, in the whole alltoall.
        capacity: how many it carries in a phase.
        use: for each phase the part of its capacity that is used.
    """

    label: str
    load: int
    capacity: Fraction
    use: tuple[float, ...]

    @property
    def fraction(self) -> Fraction:
        """The least number of phases that it needs."""
        return self.load / self.capacity

    def shares(self, window: int) -> Iterator[float]:
        """Yield the mean use of each `window` phases."""
        for start in range(0, len(self.use), window):
            part = self.use[start : start + window]
            yield sum(part) / len(part)


def link_uses(topology: Topology, schedule: PhaseSchedule) -> list[LinkUse]:
    """Return the use of both directions of all links with several ranks on either side."""
    tree = topology.tree
    starts: dict[tuple[int, int], list[int]] = {}
    for one, other in tree.links():
        if 1 < tree.ranks_beyond(one, other) < tree.rank_count - 1:
            starts[one, other] = [0] * len(schedule.phases)
            starts[other, one] = [0] * len(schedule.phases)
    for phase, messages in enumerate(schedule.phases):
        for message in messages:
            nodes = tree.node_path(*message)
            for edge in pairwise(nodes):
                if edge in starts:
                    starts[edge][phase] += 1
    names = tree.names
    uses = []
    for (one, other), counts in starts.items():
        capacity = edge_capacity(topology, one, other)
        capacity = Fraction(floor(capacity)) if capacity > 1 else capacity
        used = tuple(_use(counts, capacity))
        uses.append(LinkUse(f"{names[one]}→{names[other]}", sum(counts), capacity, used))
    return uses


def _use(starts: list[int], capacity: Fraction) -> Iterator[float]:
    """Yield the part of each phase during which an edge is busy.

    A message that does not fit into its phase, since the edge is slower than the hosts', goes
    on in the next ones.
    """
    waiting = Fraction(0)
    for count in starts:
        waiting += count / capacity
        done = min(waiting, Fraction(1))
        waiting -= done
        yield float(done)
