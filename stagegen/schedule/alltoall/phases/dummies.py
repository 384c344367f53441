"""Dummy messages that keep idle ranks in step with the phases.

Source: Faraj (2006), section 3.2.3.1. A rank is idle in a phase if it neither sends nor
receives; a rank that does either is held in the phase by its message. In the order of ranks,
each rank that is still idle

1. sends to the lowest other rank on its switch that does not receive, or else
2. receives from the lowest other rank on its switch that does not send, or else
3. sends to itself.

A dummy never overloads a link: within a switch it uses only the links of two hosts, and where
another rank of such a host may use its link, the dummy must fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil

from stagegen.schedule.alltoall.capacity import NodeEdge, edge_capacities
from stagegen.schedule.model import Message
from stagegen.topology import Topology

_Phases = Sequence[Sequence[Message]]


class _Network:
    """The links that a message between two ranks uses, and their capacities."""

    def __init__(self, topology: Topology):
        self._tree = topology.tree
        self.capacities = edge_capacities(topology)
        switch_of = [topology.host_by_name[host].switch for host in topology.ranks]
        self.peers = [
            [peer for peer, other in enumerate(switch_of) if other == switch]
            for switch in switch_of
        ]
        ranks_of = Counter(topology.ranks)
        self._shares = [ranks_of[host] > 1 for host in topology.ranks]

    def edges(self, message: Message) -> tuple[NodeEdge, ...]:
        """Return the edges of a message."""
        return tuple(pairwise(self._tree.node_path(*message)))

    @lru_cache(maxsize=1 << 16)  # noqa: B019 (the network lives as long as the call)
    def shared_edges(self, message: Message) -> tuple[NodeEdge, ...]:
        """Return the edges of a message if other ranks of its two hosts may use them, else none."""
        shares = self._shares[message.source] or self._shares[message.destination]
        return self.edges(message) if shares else ()

    def busy(self, phases: _Phases) -> Iterator[Sequence[Message]]:
        """Yield the messages that keep links busy in each phase.

        These are the messages that start in it, and those that started ⌈1/c⌉ - 1 or fewer phases
        earlier over a link with a capacity c below 1.
        """
        if min(self.capacities.values(), default=1) >= 1:
            yield from phases
            return
        running: list[tuple[int, Message]] = []
        for phase, messages in enumerate(phases):
            running = [(last, message) for last, message in running if last >= phase]
            yield [*messages, *(message for _, message in running)]
            for message in messages:
                slowest = min(self.capacities[edge] for edge in self.edges(message))
                running.append((phase + ceil(1 / slowest) - 1, message))


class _Phase:
    """The senders and receivers of a phase, dummies included."""

    def __init__(self, network: _Network, messages: Sequence[Message]):
        self._network = network
        self.sends = {message.source for message in messages}
        self.receives = {message.destination for message in messages}
        self._used = Counter(edge for message in messages for edge in network.shared_edges(message))

    def dummies(self, ranks: int) -> Iterator[Message]:
        """Yield the dummies that keep all ranks busy."""
        for rank in sorted(set(range(ranks)) - self.sends - self.receives):
            if rank not in self.sends and rank not in self.receives:
                dummy = self._partner(rank)
                self.sends.add(dummy.source)
                self.receives.add(dummy.destination)
                self._used.update(self._network.shared_edges(dummy))
                yield dummy

    def _partner(self, rank: int) -> Message:
        """Return the dummy of an idle rank."""
        peers = [peer for peer in self._network.peers[rank] if peer != rank]
        to = (Message(rank, peer) for peer in peers if peer not in self.receives)
        by = (Message(peer, rank) for peer in peers if peer not in self.sends)
        for candidates in (to, by):
            for dummy in candidates:
                if self._fits(dummy):
                    return dummy
        return Message(rank, rank)

    def _fits(self, dummy: Message) -> bool:
        """Tell whether the dummy's links have room for it."""
        edges = self._network.shared_edges(dummy)
        return all(self._used[edge] < self._network.capacities[edge] for edge in edges)


def dummy_messages(topology: Topology, phases: _Phases) -> tuple[tuple[Message, ...], ...]:
    """Return the dummies of each phase, with which every rank sends or receives in it.

    Args:
        topology: the cluster.
        phases: the messages that start in each phase, no link used beyond its capacity.
    """
    network = _Network(topology)
    same: dict[Message, Message] = {}  # one object for each dummy, however often it is sent
    return tuple(
        tuple(
            same.setdefault(dummy, dummy)
            for dummy in _Phase(network, messages).dummies(topology.rank_count)
        )
        for messages in network.busy(phases)
    )
