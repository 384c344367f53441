"""What `docs/theory.md` says of rounds of segments, where ranks and segments go as they like.

A rank goes through the phases round after round, and has at most `width` steps under way. Which
rank posts next, and which segment arrives next, is drawn at random.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import permutations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stagegen.schedule import alltoall_schedule
from tests.strategies import examples, oracle_paths, topologies


class Rounds:
    """The ranks of an alltoall in rounds, with what they have posted and received."""

    def __init__(self, topology, rounds, width):
        self.rounds, self.width = rounds, width
        self.phases = alltoall_schedule(topology, "none").phases
        self.steps = defaultdict(list)  # of a rank in one round: phase, to, from
        for number, phase in enumerate(self.phases):
            to = {message.source: message.destination for message in phase}
            come = {message.destination: message.source for message in phase}
            for rank in sorted({*to, *come}):
                self.steps[rank].append((number, to.get(rank), come.get(rank)))
        self.posted = dict.fromkeys(self.steps, 0)  # steps
        self.arrived = set()  # (round, source, destination)
        self.sent = []  # the same, in any order, until they arrive

    def step(self, rank, number):
        """Round, phase, destination and source of one."""
        turn, place = divmod(number, len(self.steps[rank]))
        return turn, *self.steps[rank][place]

    def is_complete(self, rank, number):
        turn, _, _, source = self.step(rank, number)
        return source is None or (turn, source, rank) in self.arrived

    def can_post(self, rank):
        number = self.posted[rank]
        over = number == self.rounds * len(self.steps[rank])
        return not over and (number < self.width or self.is_complete(rank, number - self.width))

    def post(self, rank):
        turn, _, destination, _ = self.step(rank, self.posted[rank])
        if destination is not None:
            self.sent.append((turn, rank, destination))
        self.posted[rank] += 1

    def can_arrive(self, segment):
        """Its receive is posted: it is of a step of the receiver's that has been posted."""
        turn, source, rank = segment
        place = next(i for i, step in enumerate(self.steps[rank]) if step[2] == source)
        return turn * len(self.steps[rank]) + place < self.posted[rank]

    def arrive(self, segment):
        self.sent.remove(segment)
        self.arrived.add(segment)

    def position(self, rank, number):
        """Round and phase of a step."""
        return self.step(rank, number)[:2]

    def too_far(self, fast, slow):
        """Whether a rank has posted a step more than a round and a window beyond another's last."""
        number = self.posted[fast] - self.width - len(self.steps[fast])
        if number < 0:
            return False
        last = self.posted[slow] - 1
        return last < 0 or self.position(slow, last) < self.position(fast, number)


@examples(30)
@given(
    topologies(max_hosts=7, max_switches=4, max_ranks=7).filter(lambda t: t.rank_count > 2),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(0, 2**16),
)
def test_rounds_end_and_keep_together(topology, rounds, width, seed):
    chance = Random(seed)
    ranks = Rounds(topology, rounds, width)
    paths = oracle_paths(topology)
    load = Counter(edge for path in paths.values() for edge in path)
    while any(ranks.posted[r] < rounds * len(steps) for r, steps in ranks.steps.items()):
        actions = [(ranks.post, rank) for rank in ranks.steps if ranks.can_post(rank)]
        actions += [(ranks.arrive, s) for s in ranks.sent if ranks.can_arrive(s)]
        assert actions, "no rank can go on"
        act, what = chance.choice(actions)
        act(what)
        assert not any(ranks.too_far(*pair) for pair in permutations(ranks.steps, 2))
        if width < topology.rank_count:
            carried = Counter(edge for _, *pair in ranks.sent for edge in paths[tuple(pair)])
            assert all(count <= 3 * load[edge] for edge, count in carried.items())
    arrivals = {segment for segment in ranks.sent if ranks.can_arrive(segment)}
    assert arrivals == set(ranks.sent)  # what is left comes
    pairs = topology.rank_count * (topology.rank_count - 1)
    assert len(ranks.arrived) + len(ranks.sent) == rounds * pairs


@given(topologies(max_hosts=7, max_switches=4, max_ranks=7), st.integers(1, 6))
def test_ranks_in_the_same_phases_have_a_segment_of_each_on_a_link(topology, width):
    paths = oracle_paths(topology)
    phases = alltoall_schedule(topology, "none").phases
    for first in range(len(phases)):
        inside = [message for phase in phases[first : first + width] for message in phase]
        carried = Counter(edge for m in inside for edge in paths[m.source, m.destination])
        assert max(carried.values(), default=0) <= width
