"""The logical ring LR3: contention-free, and with the least possible maximum of hops.

Source: the problem is Problem 2 of Faraj (2006), section 3.3.2.4; Algorithm 3 there tries all
sequences of the branches of a switch. Here a switch's branches are put in order by a condition
that tells whether an order exists (``branch_ends`` in this package) and by a construction
(``chain``), so that a switch may have many neighbour switches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stagegen.schedule.rings.bound import fewest_hops
from stagegen.schedule.rings.branch_ends import Step, switch_options
from stagegen.schedule.rings.chain import chain
from stagegen.schedule.rings.layout import Branch, HungTree, hung_up
from stagegen.schedule.rings.levels import Ends, Options, pareto
from stagegen.topology import Topology

_HOST: Options = ((0, 0),)
"""There is no switch between the link of a host and the host."""


def optimal_order(topology: Topology) -> tuple[int, ...]:
    """Return the ranks of a contention-free ring whose messages pass as few switches as possible.

    The maximum over all messages between neighbours counts. Limits on the hops are tried from a
    lower bound upwards, so the work depends on the best one: it is polynomial in the number of
    ranks for every fixed result (``docs/theory.md``).
    """
    hung = hung_up(topology)
    if not hung.switches:
        return hung.ring_order({})
    # No path passes more switches than there are, so every order keeps the last limit.
    tried = range(fewest_hops(topology), len(hung.switches) + 1)
    plans = (_Plan.within(hung, hops) for hops in tried)
    plan = next(plan for plan in plans if plan is not None)
    return hung.ring_order(dict(plan.orders()))


@dataclass(frozen=True)
class _Plan:
    """The options of the branches of every switch, for a limit on the hops.

    Attributes:
        hung: the tree.
        limit: the largest allowed sum of two ends that meet at a switch, one less than hops.
        options: of every switch below the root and of every host, as its parent sees them.
        steps: of every switch, how to get each of its pairs of ends, not counting itself.
    """

    hung: HungTree
    limit: int
    options: Mapping[int, Options]
    steps: Mapping[int, Mapping[Ends, Step]]

    @classmethod
    def within(cls, hung: HungTree, hops: int) -> _Plan | None:
        """Return the plan for at most `hops` hops, None where there is none."""
        limit = hops - 1
        options: dict[int, Options] = {}
        steps: dict[int, dict[Ends, Step]] = {}
        known: dict[object, dict[Ends, Step]] = {}
        for switch in reversed(hung.switches):
            branches = (options.get(child, _HOST) for child in hung.children[switch])
            groups = dict(sorted(Counter(branches).items()))
            closed = switch == hung.root
            same = (closed, *groups.items())
            if same not in known:
                known[same] = switch_options(groups, limit, closed)
            steps[switch] = known[same]
            options[switch] = pareto((a + 1, b + 1) for a, b in known[same] if b + 1 <= limit)
            if not (known[same] if closed else options[switch]):
                return None
        return cls(hung, limit, options, steps)

    def orders(self) -> Iterator[tuple[int, list[Branch]]]:
        """Yield the order of the branches of every switch, from the root downwards."""
        ends_of: dict[int, Ends] = {self.hung.root: (0, 0)}
        for switch in self.hung.switches:
            branches, ends, outer = self._chosen(switch, ends_of[switch])
            for branch, (first, last) in zip(branches, ends, strict=True):
                ends_of[branch] = (first - 1, last - 1)
            order = chain(ends, outer, self.limit)
            yield switch, [Branch(branches[index], turned) for index, turned in order]

    def _chosen(
        self, switch: int, own: Ends
    ) -> tuple[list[int], list[Ends], list[tuple[int, int]]]:
        """Return a switch's branches, the ends chosen for each, and which are outer ends."""
        waiting: dict[Options, list[int]] = {}
        for child in reversed(self.hung.children[switch]):
            waiting.setdefault(self.options.get(child, _HOST), []).append(child)
        branches: list[int] = []
        ends: list[Ends] = []
        outer: list[tuple[int, int]] = []
        step: Step | None = self.steps[switch][own]
        while step is not None:
            outer += [(len(branches), side) for side in step.outer]
            branches += [waiting[step.options].pop() for _ in range(step.branches)]
            ends += [step.ends] * step.branches
            step = step.before
        # The first of the two outer ends is the smaller one, as in the ends themselves.
        return branches, ends, sorted(outer, key=lambda end: ends[end[0]][end[1]])
