"""Trees of a broadcast or a reduce, for every root, as one C table with a row for each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stagegen.catalogue import Algorithm
from stagegen.generate.tables import NOBODY, per_rank
from stagegen.schedule import Tree, broadcast_tree, reduce_tree
from stagegen.schedule.verify import Proof, verify_tree
from stagegen.topology import Topology

_BINARY = 2
#: The maker of each collective's trees, and what is proven of all trees of an arity.
_MAKERS = {"bcast": broadcast_tree, "reduce": reduce_tree}
_REACHED = {
    "bcast": "a tree from each rank reaches all others",
    "reduce": "a tree leads from all others to each rank",
}


def arities_of(algorithm: Algorithm) -> Sequence[int]:
    """Return the arities that an algorithm of trees declares."""
    listed = [p.listed for p in algorithm.parameters if p.name == "arity"]
    return listed[0] if listed else (_BINARY,)


class KaryTrees:
    """The trees of an algorithm: of every root, with every arity that it declares."""

    def __init__(self, topology: Topology, algorithm: Algorithm):
        self._topology = topology
        construction, make = algorithm.construction or "", _MAKERS[algorithm.collective]
        self._trees: dict[int, list[Tree]] = {
            arity: [
                make(topology, root, construction, arity) for root in range(topology.rank_count)
            ]
            for arity in arities_of(algorithm)
        }

    def tables(self) -> dict[str, Any]:
        """Return for each arity the table: by rank and root its parent, then its children."""
        tables = [
            {"arity": arity, "text": per_rank(_rows(trees, arity))}
            for arity, trees in self._trees.items()
        ]
        return {"trees": tables}

    def proofs(self) -> Mapping[str, Proof]:
        """Return the proof of all trees of each arity.

        Raises:
            ScheduleError: a tree fails its proof.
        """
        return {f"arity {arity}": self._proof(trees) for arity, trees in self._trees.items()}

    def _proof(self, trees: list[Tree]) -> Proof:
        proofs = [verify_tree(self._topology, tree) for tree in trees]
        of_all = [c for c in proofs[0].checked if all(c in proof.checked for proof in proofs)]
        heights = sorted(tree.height for tree in trees)
        steps = " to ".join(map(str, sorted({heights[0], heights[-1]})))
        reached = f"{_REACHED[trees[0].collective]}, in {steps} steps"
        return replace(proofs[0], checked=(reached, *of_all))


def _rows(trees: list[Tree], arity: int) -> list[list[list[int]]]:
    """Return, for each rank and root, the parent and the children in the order of serving them."""
    count = len(trees)
    rows = [[[NOBODY] * (1 + arity) for _ in range(count)] for _ in range(count)]
    for root, tree in enumerate(trees):
        children = [0] * count
        for edge in tree.edges:
            parent, child = reversed(edge) if tree.collective == "reduce" else edge
            children[parent] += 1
            rows[parent][root][children[parent]] = child
            rows[child][root][0] = parent
    return rows
