"""The measures of a space–time chart: its rows and columns, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from stagegen.report.pictures.canvas import text_width
from stagegen.report.pictures.colours import GROUPS
from stagegen.report.pictures.link_use import LinkUse, link_uses
from stagegen.schedule import PhaseSchedule, depth_first_ranks
from stagegen.topology import Topology

_COLUMNS_MOST = 400
_ROWS_MOST = 40
"""Rows of links."""
HEAD = 0.9
"""For the title."""
GAP = 0.62
"""Between the ranks' rows and those of links, for the numbers of phases."""
GROUP_GAP = 0.06
"""Between the ranks of two switches."""
LINK_ROW = 0.16
"""The height of a link's row."""
_FOOT, _RIGHT = 0.2, 1.55


@dataclass(frozen=True)
class Chart:
    """An alltoall with the lengths of its chart, in inches."""

    topology: Topology
    schedule: PhaseSchedule

    @cached_property
    def window(self) -> int:
        """How many phases a column stands for."""
        return -(-len(self.schedule.phases) // _COLUMNS_MOST) or 1

    @cached_property
    def columns(self) -> int:
        """How many columns there are."""
        return -(-len(self.schedule.phases) // self.window)

    @cached_property
    def groups(self) -> list[tuple[str, list[int]]]:
        """The ranks of each switch, in the order of the tree."""
        by_switch: dict[str, list[int]] = {}
        for rank in depth_first_ranks(self.topology):
            switch = self.topology.host_by_name[self.topology.ranks[rank]].switch
            by_switch.setdefault(switch, []).append(rank)
        return list(by_switch.items())

    @cached_property
    def group_of(self) -> dict[int, int]:
        """The number of the group of each rank."""
        return {rank: at for at, (_, ranks) in enumerate(self.groups) for rank in ranks}

    @cached_property
    def shared_links(self) -> list[LinkUse]:
        """All links that ranks share."""
        return link_uses(self.topology, self.schedule)

    @cached_property
    def links(self) -> list[LinkUse]:
        """The links that get a row: the most loaded ones, in the order of the tree."""
        by_load = sorted(self.shared_links, key=lambda use: -use.fraction)
        least = by_load[:_ROWS_MOST][-1].fraction if by_load else 0
        return [use for use in self.shared_links if use.fraction >= least][:_ROWS_MOST]

    @cached_property
    def column(self) -> float:
        """The width of a column."""
        return max(0.045, min(0.32, 12.0 / max(self.columns, 1)))

    @cached_property
    def row(self) -> float:
        """The height of a rank's row."""
        return max(0.085, min(0.19, 7.0 / self.topology.rank_count))

    @cached_property
    def letter(self) -> float:
        """The size of letters in a rank's row."""
        return min(7.5, self.row * 72 * 0.72)

    @cached_property
    def left(self) -> float:
        """Where the columns begin."""
        names = max(text_width(name, 8) for name, _ in self.groups) + 0.34
        hosts = max(text_width(f"{host}  000", self.letter) for host in self.topology.ranks)
        links = max((text_width(use.label, 7.5) for use in self.links), default=0.0)
        return 0.2 + max(names + hosts, links, 1.0)

    @cached_property
    def wide(self) -> float:
        """The width of all columns."""
        return self.column * self.columns

    @cached_property
    def upper(self) -> float:
        """The height of the ranks' rows."""
        return self.row * self.topology.rank_count + GROUP_GAP * (len(self.groups) - 1)

    @cached_property
    def lower(self) -> float:
        """The height of the links' rows, with their heading."""
        return 0.3 + LINK_ROW * len(self.links) if self.links else 0.0

    @cached_property
    def width(self) -> float:
        """The width of the sheet."""
        return max(self.left + self.wide + _RIGHT, 8.0)

    @cached_property
    def height(self) -> float:
        """The height of the sheet."""
        return HEAD + self.upper + (GAP if self.lower else 0.3) + self.lower + _FOOT

    @cached_property
    def tops(self) -> dict[int, float]:
        """The upper end of each rank's row."""
        y, tops = self.height - HEAD, {}
        for _, ranks in self.groups:
            for rank in ranks:
                tops[rank] = y
                y -= self.row
            y -= GROUP_GAP
        return tops

    @cached_property
    def hops_most(self) -> int:
        """The most switches that a message passes."""
        return max(self.topology.hops(*m) for phase in self.schedule.phases for m in phase)

    @property
    def by_group(self) -> bool:
        """Whether colours show the receivers' switches; else the number of switches passed."""
        return len(self.groups) <= len(GROUPS)

    @property
    def has_numbers(self) -> bool:
        """Whether cells are large enough for the receivers' numbers."""
        return self.window == 1 and self.column >= 0.15 and self.row >= 0.11
