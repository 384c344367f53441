"""What the calls of a series tell of a node: latencies, waits, orders (Bongo et al., §4)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stagegen.inspection.nodes import Node
from stagegen.inspection.spread import Spread


@dataclass
class NodeFindings:
    """An inner node with several contributors; a list has a value for each call.

    Attributes:
        number: the node.
        rank: which rank does its work.
        host: of this rank.
        down: down latencies, from the last arrival; of a root none.
        up: up latencies, to the first departure; of a root none.
        core: of a root, from the last arrival to the first departure.
        wrapper: wrapper latencies of all contributors.
        arrival_waits: by contributor.
        departure_waits: by contributor.
        arrival_places: by contributor: how often it arrived as the first, the second, …
        departure_places: likewise.
        orders: how often the i-th arrival was the k-th departure (Table 1).
    """

    number: int
    rank: int
    host: str
    down: list[float] = field(default_factory=list)
    up: list[float] = field(default_factory=list)
    core: list[float] = field(default_factory=list)
    wrapper: list[float] = field(default_factory=list)
    arrival_waits: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    departure_waits: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    arrival_places: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    departure_places: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    orders: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def contributors(self) -> tuple[int, ...]:
        """All contributors that the node had."""
        return tuple(sorted({*self.arrival_places, *self.departure_places}))

    @property
    def all_arrival_waits(self) -> list[float]:
        """The arrival waits of all contributors."""
        return [one for waits in self.arrival_waits.values() for one in waits]

    @property
    def all_departure_waits(self) -> list[float]:
        """The departure waits of all contributors."""
        return [one for waits in self.departure_waits.values() for one in waits]

    def add(self, node: Node) -> None:
        """Take in what a call tells of the node."""
        arrived = sorted(node.ins, key=lambda name: (node.ins[name], name))
        departed = sorted(node.outs, key=lambda name: (node.outs[name], name))
        for name in arrived:
            self.arrival_waits[name].append(node.last_in - node.ins[name])
            self.arrival_places[name][arrived.index(name)] += 1
        for name in departed:
            self.departure_waits[name].append(node.outs[name] - node.first_out)
            self.departure_places[name][departed.index(name)] += 1
        for name in set(arrived) & set(departed):
            self.orders[arrived.index(name), departed.index(name)] += 1
            above = 0.0 if node.up is None or node.down is None else node.down - node.up
            self.wrapper.append(node.outs[name] - node.ins[name] - above)
        if node.up is not None and node.ins:
            self.down.append(node.up - node.last_in)
        if node.down is not None and node.outs:
            self.up.append(node.first_out - node.down)
        if node.parent is None and node.giver is None and node.ins and node.outs:
            self.core.append(node.first_out - node.last_in)

    @property
    def arrival_shares(self) -> dict[int, list[float]]:
        """By contributor, the earliest first: in which share of calls it arrived at each place."""
        return _shares(self.arrival_places)

    @property
    def departure_shares(self) -> dict[int, list[float]]:
        """By contributor, the earliest first: in which share of calls it left at each place."""
        return _shares(self.departure_places)

    def order_table(self) -> list[list[float]]:
        """Return shares: row i, column k: of the i-th arrivals, how many departed as the k-th."""
        size = 1 + max((max(pair) for pair in self.orders), default=-1)
        counts = np.zeros((size, size))
        for (arrived, departed), count in self.orders.items():
            counts[arrived, departed] = count
        totals = counts.sum(axis=1, keepdims=True)
        shares: list[list[float]] = (counts / np.maximum(totals, 1)).tolist()
        return shares

    def to_json(self) -> dict[str, Any]:
        """Return what the calls tell of the node."""

        def spread(values: Sequence[float]) -> dict[str, float] | None:
            return Spread.of(values).to_json() if values else None

        return {
            "node": self.number,
            "rank": self.rank,
            "host": self.host,
            "contributors": [contributor_name(name) for name in self.contributors],
            "down_latency": spread(self.down),
            "up_latency": spread(self.up),
            "core_latency": spread(self.core),
            "wrapper_latency": spread(self.wrapper),
            "arrival_wait_s": _means(self.arrival_waits),
            "departure_wait_s": _means(self.departure_waits),
            "arrival_order": _named(self.arrival_shares),
            "departure_order": _named(self.departure_shares),
            "departures_by_arrival": self.order_table(),
        }


def contributor_name(name: int) -> str:
    """Return a contributor in words: a rank, or a node."""
    return f"rank {name}" if name >= 0 else f"node {-1 - name}"


def _means(waits: Mapping[int, Sequence[float]]) -> dict[str, float]:
    return {contributor_name(name): float(np.mean(waits[name])) for name in sorted(waits)}


def _shares(places: Mapping[int, Counter[int]]) -> dict[int, list[float]]:
    """Return of each contributor the share of calls for each place; by its mean place."""
    size = 1 + max((max(one) for one in places.values()), default=-1)
    shares = {
        name: [counts[place] / counts.total() for place in range(size)]
        for name, counts in places.items()
    }

    def mean_place(name: int) -> float:
        return sum(place * share for place, share in enumerate(shares[name]))

    return {name: shares[name] for name in sorted(shares, key=lambda one: (mean_place(one), one))}


def _named(shares: Mapping[int, list[float]]) -> dict[str, list[float]]:
    return {contributor_name(name): shares[name] for name in sorted(shares)}
