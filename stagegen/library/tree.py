"""A library that serves one configured tree, to measure it: nothing else was tuned."""

from __future__ import annotations

from dataclasses import replace
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


def write_tree_library(
    folder: Path, topology: Topology, collective: str, tree: ConfiguredTree, on_host: int
) -> None:
    """Write the library of a tree, which serves all messages of a collective.

    Args:
        folder: to write; it may have the library of another tree.
        topology: the cluster.
        collective: that the tree serves.
        tree: any; its name does not matter.
        on_host: how ranks of a host hand over data: the parameter of the routines.
    """
    tree = tree.renamed("tree")
    whole = load_catalogue(TEMPLATES, [root_of([tree], topology)])
    kept = (whole.find(collective, algorithm_of(tree.name)),)
    catalogue = replace(whole, algorithms=with_native(whole, kept))
    rule = Rule(0, candidate_of(whole, collective, tree, on_host))
    ranks, hosts = topology.rank_count, len(set(topology.ranks))
    table = Table.exactly(collective, CLUSTER, ranks, hosts, (rule,))
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
