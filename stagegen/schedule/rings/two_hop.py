"""The logical ring LR2, on which no message passes more than two switches.

Source: Faraj (2006), section 3.3.2.3, Theorem 3 and Algorithm 2. Machines are hosts with ranks,
however many: the ranks of one host follow each other on the ring and need no switch. Switches
that lead to no rank do not count; a switch without hosts between two others breaks the
condition.
"""

from __future__ import annotations

from itertools import chain, zip_longest

from stagegen.errors import NotFoundError
from stagegen.schedule.rings.layout import Branch, HungTree, hung_up, switch_neighbours
from stagegen.topology import Topology


def two_hop_order(topology: Topology) -> tuple[int, ...]:
    """Return the ranks of a contention-free ring with at most two hops, in linear time.

    Raises:
        NotFoundError: there is none, because a switch has more neighbour switches than
            machines.
    """
    hung = hung_up(topology)
    _require_theorem_3(topology, hung)
    return hung.ring_order({switch: _alternating(hung, switch) for switch in hung.switches})


def _require_theorem_3(topology: Topology, hung: HungTree) -> None:
    """Raise an error for the first switch, in file order, that breaks the condition."""
    tree = hung.tree
    for switch in sorted(hung.switches):
        switches = len(switch_neighbours(tree, switch))
        machines = len(tree.neighbours[switch]) - switches
        if machines < switches:
            raise NotFoundError(
                f"{topology.name} has no ring with at most 2 hops: switch {tree.names[switch]} "
                f"has {_number(machines, 'machine')}, but {_number(switches, 'neighbour switch')}; "
                "it needs at least as many machines (Faraj, 2006, Theorem 3)"
            )


def _number(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def _alternating(hung: HungTree, switch: int) -> list[Branch]:
    """Return machine, sub-switch, machine, sub-switch, …, then the machines that are left.

    A switch below the root has more machines than sub-switches, so both ends that its parent
    sees are machines right at the switch.
    """
    children = hung.children[switch]
    machines = [child for child in children if child not in hung.children]
    below = [child for child in children if child in hung.children]
    in_turn = chain.from_iterable(zip_longest(machines, below))
    return [Branch(child) for child in in_turn if child is not None]
