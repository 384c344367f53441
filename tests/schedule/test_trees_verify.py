"""The checker of trees: damaged trees are rejected, exactly where the oracle says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stagegen.errors import ScheduleError
from stagegen.schedule import TREE_CONSTRUCTIONS, Message, SharedEdge, broadcast_tree, reduce_tree
from stagegen.schedule.verify import verify
from tests.schedule.oracle import Oracle
from tests.schedule.tree_oracle import free_of_contention
from tests.strategies import make_topology, topologies

constructions = pytest.mark.parametrize("construction", TREE_CONSTRUCTIONS)
makers = pytest.mark.parametrize("make", [broadcast_tree, reduce_tree])
several = topologies(max_hosts=10, max_switches=6, max_ranks=12).filter(lambda t: t.rank_count > 2)


def accepted(topology, tree) -> bool:
    try:
        verify(topology, tree)
    except ScheduleError:
        return False
    return True


@constructions
@makers
@given(topology=several, data=st.data())
def test_another_parent_is_judged_as_by_the_oracle(make, construction, topology, data):
    ranks = st.integers(0, topology.rank_count - 1)
    tree = make(topology, data.draw(ranks), construction)
    outward, edges = tree.collective == "bcast", list(tree.edges)
    place, parent = data.draw(st.integers(0, len(edges) - 1)), data.draw(ranks)
    child, old = edges[place][::-1] if outward else edges[place]
    assume(parent not in (child, old))
    edges[place] = Message(parent, child) if outward else Message(child, parent)
    damaged = replace(tree, edges=tuple(edges))
    pairs = [edge if outward else edge[::-1] for edge in edges]
    depth = {tree.root: 0}
    for _ in pairs:
        depth |= {below: depth[above] + 1 for above, below in pairs if above in depth}
    sent = [above for above, _ in pairs]
    # The damage has no effect if the tree still has no contention.
    assume(tree.contention_free)
    fine = (
        len(depth) == topology.rank_count
        and max(depth.values()) == tree.height
        and (tree.arity is None or max(map(sent.count, sent)) <= tree.arity)
        and free_of_contention(Oracle(topology), edges, 0 if outward else 1)
    )
    assert accepted(topology, damaged) == fine


@makers
def test_wrong_claims_of_a_tree_with_contention_are_found(make):
    # Ranks 0, 2 are on one switch, 1, 3 on the other: 0→2 stays there; 0→1 and 2→3 meet.
    topology = make_topology([2, 2], [0], ranks=["n0", "n2", "n1", "n3"])
    tree = make(topology, 0, "binomial")
    (edge, ranks) = tree.contention[0]
    assert (len(tree.contention), ranks, tree.in_step) == (1, 2, 2)
    verify(topology, tree)
    arrow = "→".join(edge)
    for problem, wrong in {
        "contention_free is wrong": replace(tree, contention_free=True, contention=()),
        f"{arrow} is shared by 2 ranks, not by 1": replace(tree, contention=()),
        f"{arrow} is shared by 2 ranks, not by 3": replace(tree, contention=(SharedEdge(edge, 3),)),
        "shared by 1 ranks, not by 2": replace(
            tree, contention=(*tree.contention, SharedEdge(edge[::-1], 2))
        ),
        "listed twice": replace(tree, contention=tree.contention * 2),
        "2 ranks share an edge in a step, not 1": replace(tree, in_step=1),
        "unknown collective 'scan'": replace(tree, collective="scan"),
    }.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)


def test_wrong_claims_of_a_binary_tree_are_found():
    topology = make_topology([3], [])
    tree = broadcast_tree(topology, 0, "binary")
    for problem, wrong in {
        "rank 0 has 2 children, more than the arity 1": replace(tree, arity=1),
        "1 ranks share an edge in a step, not 2": replace(tree, in_step=2),
        "ranks differ from the topology's": replace(tree, ranks=("n0", "n1", "n9")),
        "the height is 1, not 2": replace(tree, height=2),
        "leads into the root": replace(tree, collective="bcast", edges=tree.reversed().edges),
        "leads away from the root": replace(tree, collective="reduce"),
    }.items():
        with pytest.raises(ScheduleError, match=problem):
            verify(topology, wrong)


def test_messages_of_a_reduce_are_checked_by_receivers():
    # Ranks 2, 3 on the second switch: both may send to rank 0 in turn, but not to 0 and 1.
    topology = make_topology([2, 2], [0])
    tree = reduce_tree(topology, 0, "flat")
    verify(topology, tree)
    edges = (Message(3, 1), Message(2, 0), Message(1, 0))
    with pytest.raises(ScheduleError, match="3→1 and 2→0 share the edge s1→s0"):
        verify(topology, replace(tree, edges=edges, height=2))


@pytest.mark.parametrize(
    ("construction", "words"), [("binary", "more than 2 children"), ("flat", "")]
)
def test_the_proof_says_what_holds(construction, words):
    topology = make_topology([3, 3], [0])
    lines = "\n".join(verify(topology, broadcast_tree(topology, 4, construction)).lines())
    assert words in lines
    assert "reaches every rank from rank 4" in lines
    assert "of different senders share no network edge" in lines
    lines = "\n".join(verify(topology, reduce_tree(topology, 4, construction)).lines())
    assert "leads from every rank to rank 4" in lines
    assert "to different receivers share no network edge" in lines
