"""LR3 and its parts, each compared with a plain search."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.schedule import logical_ring
from stagegen.schedule.rings.bound import fewest_hops, least_meeting
from stagegen.schedule.rings.branch_ends import switch_options
from stagegen.schedule.rings.chain import chain
from stagegen.schedule.rings.levels import pareto
from stagegen.schedule.verify import verify
from stagegen.schedule.verify.hops import Climb
from tests.schedule.ring_oracle import fewest_hops_by_algorithm_3
from tests.strategies import examples, make_topology, topologies

sizes = st.integers(0, 5)


def sequences(ends, closed):
    """Every order of branches with every direction; a circle starts with its first branch."""
    branches = range(1, len(ends)) if closed else range(len(ends))
    head = ((0,),) if closed else ((),)
    for first, rest in itertools.product(head, itertools.permutations(branches)):
        for turned in itertools.product((0, 1), repeat=len(ends)):
            yield list(zip(first + rest, turned, strict=True))


def legal(ends, order, limit, closed):
    meeting = itertools.pairwise([*order, order[0]] if closed else order)
    return all(ends[a][1 - s] + ends[b][t] <= limit for (a, s), (b, t) in meeting)


def ends_for(limit):
    """Both ends of a branch, neither of them above the limit, and often complements of others."""
    size = st.integers(0, limit)
    return st.tuples(size, size)


def order_exists(ends, outer, limit):
    """Search by sets of branches, from the first outer end, or around from branch 0."""
    (start, entry), (final, leave) = outer or [(0, 0), (0, 0)]
    reached = {(frozenset([start]), start, 1 - entry)}
    for _ in ends[1:]:
        reached = {
            (passed | {branch}, branch, 1 - side)
            for passed, last, exit_side in reached
            for branch in range(len(ends))
            if branch not in passed
            for side in (0, 1)
            if ends[last][exit_side] + ends[branch][side] <= limit
        }
    if outer:
        return any((last, side) == (final, leave) for _, last, side in reached)
    return any(ends[last][side] + ends[start][entry] <= limit for _, last, side in reached)


@given(st.integers(0, 5), st.data())
@examples(150)
def test_chain_finds_an_order_iff_there_is_one(limit, data):
    # Half of the ends are complements of others, so that tight levels and circles are common.
    half = data.draw(st.lists(ends_for(limit), min_size=1, max_size=4))
    ends = data.draw(st.permutations(half + [(limit - b, limit - a) for a, b in half]))
    ends = ends[: data.draw(st.integers(2, len(ends)))]
    outer = []
    if data.draw(st.booleans()):
        one, other = data.draw(st.permutations(range(len(ends))))[:2]
        outer = [(one, data.draw(st.integers(0, 1))), (other, data.draw(st.integers(0, 1)))]
    if not order_exists(ends, outer, limit):
        with pytest.raises(ValueError, match=r"sum to more|cannot be joined"):
            chain(ends, outer, limit)
        return
    order = [(branch, int(turned)) for branch, turned in chain(ends, outer, limit)]
    assert sorted(branch for branch, _ in order) == list(range(len(ends)))
    assert legal(ends, order, limit, closed=not outer)
    if outer:
        (first, side), (last, turned) = order[0], order[-1]
        assert [(first, side), (last, 1 - turned)] == outer


def test_every_four_and_five_branches_are_chained_iff_they_can_be():
    """All with ends up to 2, where circles are common and must be joined."""
    pairs = list(itertools.combinations_with_replacement(range(3), 2))
    for count in (4, 5):
        for ends in itertools.combinations_with_replacement(pairs, count):
            for limit in (2, 3):
                try:
                    order = chain(ends, [], limit)
                except ValueError:
                    assert not order_exists(ends, [], limit)
                else:
                    assert legal(ends, [(b, int(t)) for b, t in order], limit, closed=True)
                    assert len(order) == count


def best_of_all_orders(options, limit, closed):
    """The best pairs of outer ends, by trying all choices, orders and directions."""
    possible = set()
    for ends in itertools.product(*options):
        for order in sequences(ends, closed):
            if legal(ends, order, limit, closed):
                (first, side), (last, turned) = order[0], order[-1]
                outer = ends[first][side], ends[last][1 - turned]
                possible.add((0, 0) if closed else (min(outer), max(outer)))
    return pareto(possible)


def options_found(options, limit, closed):
    groups = {option: options.count(option) for option in sorted(options)}
    return tuple(switch_options(groups, limit, closed))


@given(st.integers(0, 5), st.booleans(), st.data())
@examples(200)
def test_options_of_a_switch_are_the_best_of_all_choices(limit, closed, data):
    choice = st.lists(ends_for(limit), min_size=1, max_size=2)
    choices = data.draw(st.lists(choice, min_size=2 if closed else 1, max_size=4))
    options = [pareto((min(ends), max(ends)) for ends in choice) for choice in choices]
    assert options_found(options, limit, closed) == best_of_all_orders(options, limit, closed)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_options_of_every_three_branches_are_the_best_of_all_choices(limit, closed):
    """With limit 2, ends 0, 0 and 2, 2 must meet each other: no branch 1, 1 fits in between."""
    pairs = itertools.combinations_with_replacement(range(limit + 1), 2)
    for branches in itertools.combinations_with_replacement([(pair,) for pair in pairs], 3):
        found = options_found(branches, limit, closed)
        assert found == best_of_all_orders(branches, limit, closed), branches


@given(st.lists(sizes, min_size=2, max_size=7))
def test_the_least_meeting_is_that_of_the_best_circle(numbers):
    circles = ([numbers[0], *rest] for rest in itertools.permutations(numbers[1:]))
    best = min(
        max(a + b for a, b in itertools.pairwise([*circle, circle[0]])) for circle in circles
    )
    assert least_meeting(numbers) == best


@given(topologies(max_hosts=14, max_switches=12))
def test_the_optimal_ring_has_as_few_hops_as_by_algorithm_3(topology):
    ring = logical_ring(topology, "lr3")
    assert ring.max_hops == fewest_hops_by_algorithm_3(topology)
    # The checker's bound is its own, and looks further.
    assert fewest_hops(topology) <= Climb(topology).floor().hops <= ring.max_hops


def test_a_proof_says_whether_a_switch_shows_the_minimum():
    # Seven switches of one machine need 4 hops, though nearest machines alone would allow 3.
    shown = make_topology([1] * 7, [0, 1, 2, 1, 4, 0])
    assert fewest_hops(shown) == 3
    proof = verify(shown, logical_ring(shown, "lr3"))
    assert proof.checked[-1] == "no contention-free ring has a smaller maximum, as switch s1 shows"
    beyond = make_topology([1, 0] * 4 + [1], [0, 1, 2, 3, 1, 5, 0, 7])
    proof = verify(beyond, logical_ring(beyond, "lr3"))
    assert proof.checked[-1].startswith("not shown here")


def dense(switches, hosts):
    """A switch with 48 neighbours, each with a tree of bare and crowded switches below."""
    counts, parents = [hosts], []
    for index in range(switches):
        top = len(counts)
        below = 1 + index % 4
        counts += [index % 3, *(1 + (index + i) % 2 for i in range(below))]
        parents += [0, *(top + i // 2 for i in range(below))]
    return make_topology(counts, parents)


@pytest.mark.parametrize("hosts", [0, 5, 40])
def test_a_switch_with_48_neighbour_switches_has_a_proven_ring(hosts):
    topology = dense(48, hosts)
    verify(topology, logical_ring(topology, "lr3"))


@pytest.mark.parametrize("width", [1, 3, 10**9])
def test_deep_and_flat_trees_of_ten_thousand_hosts_have_rings_of_few_hops(width):
    """A path, a tree like a chain, and a random tree; 2,000 switches with 5 hosts each."""
    count = 2000
    spread = 7919  # a prime, so that parents look random
    parents = [max(0, i - 1 - i * spread % min(width, i)) for i in range(1, count)]
    topology = make_topology([5] * count, parents)
    ring = logical_ring(topology, "lr3")
    verify(topology, ring)
    assert ring.max_hops <= 4
