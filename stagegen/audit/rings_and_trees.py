"""Rebuilds logical rings and broadcast trees from the tables of their routines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stagegen.audit.tables import NOBODY, Tables
from stagegen.errors import ScheduleError
from stagegen.schedule import RING_CONSTRUCTIONS, Message, Ring, Tree
from stagegen.schedule.verify import Proof
from stagegen.topology import Topology


def ring_of(topology: Topology, tables: Tables, function: str) -> Ring:
    """Return the ring of the table `ring[]`, whose construction is a constant beside it.

    Raises:
        ScheduleError: the tables contradict each other, or the name of the function.
    """
    named = function.partition("_group_")[0].rpartition("_")[2]
    number = tables.constants.get("LOGICAL_RING")
    construction = f"lr{number}"
    if construction not in RING_CONSTRUCTIONS:
        expected = ", ".join(one.removeprefix("lr") for one in RING_CONSTRUCTIONS)
        found = "missing" if number is None else number
        raise ScheduleError(f"LOGICAL_RING is {found}, expected one of {expected}")
    if others := sorted(set(tables.constants) - {"LOGICAL_RING"}):
        raise ScheduleError(f"a ring has no constant {', '.join(others)}; expected LOGICAL_RING")
    if named in RING_CONSTRUCTIONS and named != construction:
        raise ScheduleError(f"the tables are of the ring {construction}, not of {named}")
    return around(topology, _circle(topology, tables), construction)


def around(topology: Topology, order: tuple[int, ...], construction: str = "lr1") -> Ring:
    """Return the ring of an order of all ranks."""
    return Ring(topology.ranks, construction, order, _most_hops(topology, order))


def kary_trees(topology: Topology, tables: Tables) -> Iterator[tuple[int, Tree]]:
    """Yield the trees of every table `tree_K[]` from every root, with K.

    Raises:
        ScheduleError: a table is missing, or parents and children contradict each other; names
            rank and root.
    """
    ranks = topology.rank_count
    by_arity = {int(name.removeprefix("tree_")): table for name, table in tables.arrays.items()}
    tables.require_constants({"CHILDREN_MOST": max(by_arity), "NOBODY": NOBODY})
    for arity, numbers in by_arity.items():
        if len(numbers) != ranks * ranks * (1 + arity):
            raise ScheduleError(
                f"tree_{arity}[] has {len(numbers)} numbers, not one row for each root"
            )
        for root in range(ranks):
            rows = [
                numbers[(rank * ranks + root) * (1 + arity) :][: 1 + arity] for rank in range(ranks)
            ]
            yield arity, _tree(topology, root, rows, arity)


def tree_proof(trees: Sequence[Tree], proofs: Sequence[Proof]) -> Proof:
    """Return the common proof of all trees of an arity, one tree for each root."""
    of_all = [line for line in proofs[0].checked if all(line in p.checked for p in proofs)]
    heights = sorted({min(tree.height for tree in trees), max(tree.height for tree in trees)})
    steps = " to ".join(map(str, heights))
    reached = f"a tree from each rank reaches all others, in {steps} steps"
    if trees[0].collective == "reduce":
        reached = f"a tree leads from all others to each rank, in {steps} steps"
    return replace(proofs[0], checked=(reached, *of_all))


def _tree(topology: Topology, root: int, rows: list[tuple[int, ...]], arity: int) -> Tree:
    """Return the tree of each rank's parent and children."""
    edges = []
    for rank, (_, *children) in enumerate(rows):
        used = [child for child in children if child != NOBODY]
        if used != children[: len(used)]:
            raise ScheduleError(f"tree from rank {root}: rank {rank} has a child after NOBODY")
        edges += [Message(rank, child) for child in used]
    told = {(parent, rank) for rank, (parent, *_) in enumerate(rows) if parent != NOBODY}
    for parent, child in sorted(told ^ set(edges)):
        side = f"rank {parent} sends" if (parent, child) in edges else f"rank {child} waits for"
        raise ScheduleError(f"tree from rank {root}: only {side} {parent}→{child}")
    construction = "binary" if arity == 2 else "kary"
    return _promised(topology, construction, root, tuple(edges), arity)


def _promised(
    topology: Topology, construction: str, root: int, edges: tuple[Message, ...], arity: int
) -> Tree:
    """Return the tree with the property that routines rely on: no two senders share an edge."""
    return Tree(
        ranks=topology.ranks,
        construction=construction,
        root=root,
        edges=edges,
        height=_height(root, edges),
        contention_free=True,
        arity=arity,
        in_step=min(1, len(edges)),
    )


def _height(root: int, edges: tuple[Message, ...]) -> int:
    """Return the distance of the furthest rank that the root reaches."""
    children: dict[int, list[int]] = {}
    for parent, child in edges:
        children.setdefault(parent, []).append(child)
    height, level, seen = 0, [root], {root}
    while below := [c for rank in level for c in children.get(rank, ()) if c not in seen]:
        height, level = height + 1, below
        seen.update(below)
    return height


def _circle(topology: Topology, tables: Tables) -> tuple[int, ...]:
    """Return the order of all ranks in `ring[]`, whose inverse the other table must be."""
    order, places = tables.array("ring"), tables.array("place_of")
    for place, rank in enumerate(order):
        if not 0 <= rank < topology.rank_count:
            last = topology.rank_count - 1
            raise ScheduleError(f"ring[{place}] is {rank}, but ranks are 0 to {last}")
        if rank >= len(places) or places[rank] != place:
            told = places[rank] if rank < len(places) else "missing"
            problem = f"place_of[{rank}] is {told}, but ring[{place}] is {rank}"
            raise ScheduleError(f"rank {rank}: place_of[] contradicts ring[{place}]: {problem}")
    if not len(order) == len(places) == topology.rank_count:
        raise ScheduleError(f"ring[] has {len(order)} of {topology.rank_count} ranks")
    return order


def _most_hops(topology: Topology, order: tuple[int, ...]) -> int:
    around = zip(order, order[1:] + order[:1], strict=True)
    return max((topology.hops(a, b) for a, b in around if a != b), default=0)
