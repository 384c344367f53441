"""Where messages of a broadcast tree from different senders meet.

Section 3.4.2 of Faraj (2006) rules such places out, so that a pipeline can keep all messages under
way; the binomial tree, which ignores the network, has them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from stagegen.schedule.model import Message, SharedEdge
from stagegen.topology import Edge, Topology


def shared_edges(topology: Topology, edges: Sequence[Message]) -> tuple[SharedEdge, ...]:
    """Return the network edges that messages of several senders use, the worst first."""
    senders: dict[Edge, set[int]] = defaultdict(set)
    for message in edges:
        for used in topology.path(*message):
            senders[used].add(message.source)
    shared = (SharedEdge(used, len(ranks)) for used, ranks in senders.items() if len(ranks) > 1)
    return tuple(sorted(shared, key=lambda one: (-one.ranks, one.edge)))


def senders_in_step(topology: Topology, edges: Sequence[Message]) -> int:
    """Return the most senders that share a network edge in one step.

    A rank that gets the data in step s sends to its q-th child in step s + q, as in an atomic
    broadcast where all messages take equally long.

    Args:
        topology: the cluster.
        edges: every parent before its children, children in the order of sending.
    """
    arrival: dict[int, int] = {}
    sent: Counter[int] = Counter()
    users: Counter[tuple[int, Edge]] = Counter()
    for message in edges:
        sent[message.source] += 1
        step = arrival.get(message.source, 0) + sent[message.source]
        arrival[message.destination] = step
        users.update((step, used) for used in topology.path(*message))
    return max(users.values(), default=0)
