"""A library that serves one configured tree, or a few by size, to measure them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stagegen.catalogue import Catalogue, load_catalogue, with_native
from stagegen.data import TEMPLATES
from stagegen.generate import write_files
from stagegen.library.folder import library_files
from stagegen.measure.records import Candidate
from stagegen.parts.trees import algorithm_of, root_of
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree
from stagegen.tune.candidates import default_candidate, with_value
from stagegen.tune.decision import CLUSTER, DecisionTable, Rule, Table

#: In place of the hash of the catalogue, which each tree changes: so make compiles only what the
#: tree has changed if a folder gets another one.
ANY_CATALOGUE = "0" * 64


@dataclass(frozen=True)
class Served:
    """A tree of a library.

    Attributes:
        tree: any; its name does not matter.
        on_host: how ranks of a host hand over data: the parameter of the routines.
        first: it serves messages of so many bytes and more, up to the next one's.
    """

    tree: ConfiguredTree
    on_host: int
    first: int = 0


def write_tree_library(
    folder: Path, topology: Topology, collective: str, served: Sequence[Served]
) -> None:
    """Write the library of trees, which serve all messages of a collective.

    Args:
        folder: to write; it may have the library of other trees.
        topology: the cluster.
        collective: that the trees serve.
        served: the trees, by size; the first one from 0.
    """
    named = [one.tree.renamed(f"tree{number or ''}") for number, one in enumerate(served)]
    full = load_catalogue(TEMPLATES, [root_of(named, topology)])
    kept = [full.find(collective, algorithm_of(tree.name)) for tree in named]
    catalogue = replace(full, algorithms=with_native(full, kept))
    rules = tuple(
        Rule(one.first, candidate_of(full, collective, tree, one.on_host))
        for one, tree in zip(served, named, strict=True)
    )
    ranks, hosts = topology.rank_count, len(set(topology.ranks))
    table = Table.exactly(collective, CLUSTER, ranks, hosts, rules)
    decision = DecisionTable(topology.name, topology.hash, catalogue.hash, False, (table,))
    files = library_files(topology, catalogue, decision)
    short = catalogue.hash[:16]
    write_files(
        folder, {name: text.replace(short, ANY_CATALOGUE[:16]) for name, text in files.items()}
    )


def candidate_of(
    catalogue: Catalogue, collective: str, tree: ConfiguredTree, on_host: int
) -> Candidate:
    """Return the candidate of a tree; a tree without links on a host has no parameter."""
    algorithm = catalogue.find(collective, algorithm_of(tree.name))
    candidate = default_candidate(algorithm)
    return with_value(candidate, "on_host", on_host) if algorithm.parameters else candidate
