"""Plain and slow definitions that schedules and their checker are compared with."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction

import networkx as nx

from stagegen.schedule import SCHEMES, Message, PhaseSchedule
from stagegen.topology import Topology
from tests.strategies import oracle_paths


def with_link_rates(topology: Topology, factors: list[Fraction]) -> Topology:
    """The topology with switch links of other rates: each by one of the factors, in turn."""
    links = [
        replace(link, bandwidth=int(link.bandwidth * factor))
        for link, factor in zip(topology.links, itertools.cycle(factors), strict=False)
    ]
    return replace(topology, links=tuple(links))


_WAIT = ("arrival", "start")


class Oracle:
    """A topology's paths as edge sets, and what contention means."""

    def __init__(self, topology: Topology):
        self.ranks = topology.rank_count
        self.paths = {pair: set(path) for pair, path in oracle_paths(topology).items()}
        used = set(topology.ranks)
        slowest = min(host.bandwidth for host in topology.hosts if host.name in used)
        self.capacity: dict[tuple[str, str], Fraction] = defaultdict(lambda: Fraction(1))
        for ends, rate in [((h.name, h.switch), h.bandwidth) for h in topology.hosts] + [
            (link.ends, link.rate) for link in topology.links
        ]:
            self.capacity[ends] = self.capacity[ends[::-1]] = Fraction(rate, slowest)
        for path in oracle_paths(topology).values():  # a rank sends and receives one at a time
            self.capacity[path[0]] = self.capacity[path[-1]] = Fraction(1)

    def whole(self, edge) -> int:
        """How many messages of a phase an edge carries; 1 for a slow edge, which takes longer."""
        return max(1, int(self.capacity[edge]))

    def greedy_phases(self, order) -> tuple[tuple[Message, ...], ...]:
        """Phases by first fit: a valid schedule for any capacities of at least 1."""
        phases: list[list[Message]] = []
        loads: list[Counter] = []
        for source, destination in order:
            uses = [("from", source), ("to", destination), *self.paths[source, destination]]
            limit = {use: 1 if use[0] in ("from", "to") else self.whole(use) for use in uses}
            fits = (p for p, load in enumerate(loads) if all(load[u] < limit[u] for u in uses))
            phase = next(fits, len(phases))
            if phase == len(phases):
                phases.append([])
                loads.append(Counter())
            phases[phase].append(Message(source, destination))
            loads[phase].update(uses)
        return tuple(map(tuple, phases))

    def program_order(self, phases) -> nx.MultiDiGraph:
        """What happens to messages: each starts and then arrives, and a rank starts one by one.

        That a rank's message has started, or that its send is complete, does not mean that it has
        arrived.
        """
        graph = nx.MultiDiGraph()
        placed = [message for messages in phases for message in messages]
        graph.add_edges_from(((m, "start"), (m, "arrival")) for m in placed)
        for rank in range(self.ranks):
            own = [(m, "start") for m in placed if m.source == rank]
            graph.add_edges_from(itertools.pairwise(own))
        return graph

    def ordered(self, phases, syncs) -> nx.MultiDiGraph:
        """The same, and each later message of a sync starts when the earlier one has arrived."""
        graph = self.program_order(phases)
        graph.add_edges_from(map(self.wait, syncs))
        return graph

    @staticmethod
    def wait(pair):
        """A sync as an edge of :meth:`ordered`."""
        return (pair[0], "arrival"), (pair[1], "start")

    def window_order(self, phases, window: int = 1) -> nx.DiGraph:
        """Every user of an edge after the one that is window · capacity before it."""
        users = defaultdict(list)
        graph = nx.DiGraph()
        for message in itertools.chain.from_iterable(phases):
            graph.add_node(message)
            for edge in self.paths[message]:
                users[edge].append(message)
        for edge, messages in users.items():
            apart = window * self.whole(edge)
            graph.add_edges_from(zip(messages, messages[apart:], strict=False))
        return graph

    def own_sends(self, phases):
        """A rank's sends one after the other, for schemes in which it waits for each."""
        placed = [message for messages in phases for message in messages]
        for rank in range(self.ranks):
            yield from itertools.pairwise(m for m in placed if m.source == rank)

    def minimal_syncs(self, phases, window: int = 1, more=()) -> set[tuple[Message, Message]]:
        """What is left of all orders when whatever follows from others is left out."""
        needed = [*self.window_order(phases, window).edges, *more]
        every = nx.DiGraph(self.ordered(phases, needed))
        reduced = nx.transitive_reduction(every).edges
        return {(a, b) for (a, event), (b, other) in reduced if (event, other) == _WAIT}

    def unambiguous_syncs(self, phases, window: int = 1) -> set[tuple[Message, Message]]:
        """The same with receiver-based tokens, awaited in the order in which they are given."""
        number = {m: i for i, m in enumerate(itertools.chain.from_iterable(phases))}
        more: set[tuple[Message, Message]] = set()
        while True:
            syncs = self.minimal_syncs(phases, window, more)
            late = {
                (u, x, min(earlier, key=number.__getitem__))
                for u, x in syncs
                if (
                    earlier := [
                        y
                        for v, y in syncs
                        if (u.destination, x.source) == (v.destination, y.source)
                        and number[u] < number[v]
                        and number[y] < number[x]
                    ]
                )
            }
            if not late:
                return syncs
            more |= {
                (u, y)
                for u, x, y in late
                if not any(  # what waits at a later step, but in time for u, may imply it
                    (u.destination, x.source) == (v.destination, z.source)
                    and number[y] < number[z] <= number[x]
                    for v, _, z in late
                )
            }

    @property
    def bottleneck(self) -> int:
        uses: dict[tuple[str, str], int] = defaultdict(int)
        for path in self.paths.values():
            for edge in path:
                uses[edge] += 1
        return max(uses.values(), default=0)

    def clash(self, one, other) -> bool:
        return bool(self.paths[tuple(one)] & self.paths[tuple(other)])

    def contention_free(self, messages) -> bool:
        return not any(self.clash(*pair) for pair in itertools.combinations(messages, 2))

    def conflict_order(self, phases) -> nx.DiGraph:
        """Every pair of messages with contention, from the earlier to the later phase."""
        graph = nx.DiGraph()
        placed = [(p, m) for p, messages in enumerate(phases) for m in messages]
        graph.add_nodes_from(message for _, message in placed)
        for (p, one), (q, other) in itertools.combinations(placed, 2):
            if p < q and self.clash(one, other):
                graph.add_edge(one, other)
        return graph

    @property
    def bound(self) -> int:
        """The fewest phases that the load of each edge allows."""
        loads = Counter(edge for path in self.paths.values() for edge in path)
        rates = {e: c if c < 1 else Fraction(int(c)) for e, c in self.capacity.items()}
        return max((math.ceil(load / rates[edge]) for edge, load in loads.items()), default=0)

    def fits(self, messages) -> bool:
        """Whether messages, some perhaps of a rank to itself, may be under way together."""
        load = Counter(
            edge for m in messages if m.source != m.destination for edge in self.paths[m]
        )
        return (
            all(count <= self.whole(edge) for edge, count in load.items())
            and len({m.source for m in messages}) == len(messages)
            and len({m.destination for m in messages}) == len(messages)
        )

    def is_valid(self, schedule: PhaseSchedule) -> bool:
        """Whether a schedule has all the properties that the checker promises.

        Of its phases and what keeps them apart, that is; for capacities of at least 1.
        """
        placed = [(p, m) for p, messages in enumerate(schedule.phases) for m in messages]
        phase_of = {m: p for p, m in placed}
        every = set(itertools.permutations(range(self.ranks), 2))
        scheme, equal = SCHEMES[schedule.sync.scheme], all(c < 2 for c in self.capacity.values())
        return (
            sorted(map(tuple, (m for _, m in placed))) == sorted(every)
            and all(map(self.fits, schedule.phases))
            and schedule.bound_phases == self.bound
            and len(schedule.phases) == max(phase_of.values(), default=-1) + 1
            and (len(schedule.phases) == self.bound or not equal)
            and (scheme.blocks or schedule.sync.block_size == 1)
            and all(self._sync_is_valid(schedule, sync, phase_of) for sync in schedule.sync.syncs)
            and self._tokens_in_order(schedule, phase_of)
            and (scheme.giver is None or self._is_ordered(schedule, phase_of))
            and self._dummies_are_valid(schedule)
        )

    @staticmethod
    def _sync_is_valid(schedule, sync, phase_of) -> bool:
        first, then, token = sync
        if first not in phase_of or then not in phase_of or phase_of[first] >= phase_of[then]:
            return False
        scheme, size = SCHEMES[schedule.sync.scheme], schedule.sync.block_size
        same_block = phase_of[first] // size == phase_of[then] // size
        if scheme.blocks and same_block != scheme.barriers:
            return False
        if scheme.giver is None:
            return False
        giver = first.source if scheme.giver == "sender" else first.destination
        return token == (None if giver == then.source else (giver, then.source))

    @staticmethod
    def _tokens_in_order(schedule, phase_of) -> bool:
        streams = defaultdict(list)
        for first, then, token in schedule.sync.syncs:
            if token is not None:
                streams[token].append((phase_of[first], phase_of[then]))
        return all(
            (given[0] - later[0]) * (given[1] - later[1]) >= 0
            for stream in streams.values()
            for given, later in itertools.combinations(stream, 2)
        )

    def _is_ordered(self, schedule, phase_of) -> bool:
        """Whether the syncs order what they have to, and no token is for what others imply."""
        scheme, size = SCHEMES[schedule.sync.scheme], schedule.sync.block_size
        pairs = [(first, then) for first, then, token in schedule.sync.syncs if token]
        if scheme.giver == "sender":
            pairs += self.own_sends(schedule.phases)
        known = self.ordered(schedule.phases, pairs)
        needed = []
        for pair in self.window_order(schedule.phases, schedule.sync.window).edges:
            same_block = phase_of[pair[0]] // size == phase_of[pair[1]] // size
            if not scheme.blocks or same_block == scheme.barriers:
                needed.append(pair)
            elif same_block:
                known.add_edge(*self.wait(pair))
        for first, then, token in schedule.sync.syncs:
            if token is None:
                continue
            wait = self.wait((first, then))
            known.remove_edge(*wait)
            if nx.has_path(known, *wait):
                return False
            known.add_edge(*wait)
        return all(nx.has_path(known, *self.wait(pair)) for pair in needed)

    def _dummies_are_valid(self, schedule) -> bool:
        if not SCHEMES[schedule.sync.scheme].dummies:
            return not any(schedule.dummies)
        together = [
            (*real, *more) for real, more in zip(schedule.phases, schedule.dummies, strict=False)
        ]
        return len(schedule.dummies) == len(schedule.phases) and all(
            self.fits(messages) and {r for m in messages for r in m} == set(range(self.ranks))
            for messages in together
        )

    def fewest_phases(self) -> int:
        """The fewest phases of any schedule, by trying: a minimum colouring of the conflicts."""
        messages = sorted(self.paths)
        clashes = {m: {o for o in messages if o != m and self.clash(m, o)} for m in messages}
        for phases in itertools.count(0):
            if self._can_colour(messages, clashes, {}, phases):
                return phases
        raise AssertionError

    def _can_colour(self, messages, clashes, colour, phases) -> bool:
        if len(colour) == len(messages):
            return True
        open_choices = {
            m: set(range(phases)) - {colour[o] for o in clashes[m] if o in colour}
            for m in messages
            if m not in colour
        }
        message = min(open_choices, key=lambda m: len(open_choices[m]))
        used = max(colour.values(), default=-1)
        # A phase that is still empty is as good as any other empty one.
        for choice in sorted(c for c in open_choices[message] if c <= used + 1):
            if self._can_colour(messages, clashes, {**colour, message: choice}, phases):
                return True
        return False


def as_messages(pairs) -> tuple[Message, ...]:
    return tuple(Message(*pair) for pair in pairs)
