"""Catalogues and tables with the routines of patterns, for libraries of tests."""

from __future__ import annotations

from dataclasses import replace

from stagegen.catalogue import Catalogue, load_catalogue, with_native
from stagegen.generate.pattern_templates import algorithm_name, pattern_root
from stagegen.patterns import Pattern, make_pattern
from stagegen.topology import Topology
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.candidates import default_candidate
from stagegen.tune.communicators import name_of
from tests.mpi import support

RANKS = 6
KINDS = ("zipf", "sparse", "heavy", "banded")


def patterns(ranks: int, average: int = 300) -> list[Pattern]:
    """A pattern of each kind; blocks short enough for many calls, long enough for pieces."""
    return [replace(make_pattern(kind, ranks, average, 3), name=kind) for kind in KINDS]


def catalogue(topology: Topology, own: list[Pattern]) -> Catalogue:
    """The routines of patterns, and what every library has."""
    whole = load_catalogue(added=(pattern_root(topology, own, "patterns.yaml"),))
    classes = (f"allgatherv/{EVEN}", f"allgatherv/{SKEWED}")
    chosen = [
        a for a in whole.algorithms if a.name.startswith("pattern_") or a.full_name in classes
    ]
    return replace(whole, algorithms=with_native(whole, chosen))


#: An allgatherv in which one block is ten times as long as the others.
LONG = Pattern("one-long", "allgatherv", ((100,) * (RANKS - 1) + (1000,),))
#: What serves allgatherv: calls with about even blocks, and those with a long one.
EVEN, SKEWED = "ring", "pipelined_ring"


def rules_of_classes(topology: Topology) -> tuple[Table, ...]:
    """Rules for allgatherv; of those for one long block only the larger sizes have another."""
    found = load_catalogue()
    ring, pipelined = (default_candidate(found.find("allgatherv", n)) for n in (EVEN, SKEWED))
    rules = (Rule(0, ring), Rule(600, pipelined, (599, 600)))
    hosts = len(set(topology.ranks))
    return (
        Table.exactly("allgatherv", "cluster", RANKS, hosts, (Rule(0, ring),)),
        Table.exactly(
            "allgatherv",
            name_of(LONG),
            RANKS,
            hosts,
            rules,
        ),
    )


def decision(topology: Topology, found: Catalogue, own: list[Pattern]) -> DecisionTable:
    """One rule for each pattern: the routine of its order; and what serves other calls."""
    usual = support.decision(topology, found)
    hosts = len(set(topology.ranks))
    tables = tuple(
        Table.exactly(
            "alltoallv", name_of(one), one.ranks, hosts,
            (Rule(0, default_candidate(found.find("alltoallv", algorithm_name(one)))),),
        )
        for one in own
    )  # fmt: skip
    if topology.rank_count == RANKS == len(set(topology.ranks)):
        others = tuple(t for t in usual.tables if t.collective != "allgatherv")
        usual = replace(usual, tables=(*others, *rules_of_classes(topology)))
        own = [*own, LONG]
    return replace(usual, tables=(*usual.tables, *tables), patterns=tuple(own))
