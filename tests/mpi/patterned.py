"""Catalogues and tables with the routines of patterns, for libraries of tests."""

from __future__ import annotations

from dataclasses import replace

from stagegen.catalogue import Catalogue, groups_of, load_catalogue, with_native
from stagegen.generate.pattern_templates import algorithm_name, algorithm_names, pattern_root
from stagegen.patterns import Pattern, make_pattern
from stagegen.topology import WHOLE, Group, Topology
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.candidates import default_candidate
from stagegen.tune.communicators import name_of
from tests.mpi import support

RANKS = 6
FAMILIES = ("zipf", "sparse", "heavy", "banded")


def patterns(ranks: int, average: int = 300) -> list[Pattern]:
    """A pattern of each family; blocks short enough for many calls, long enough for pieces."""
    return [replace(make_pattern(family, ranks, average, 3), name=family) for family in FAMILIES]


def catalogue(topology: Topology, own: list[Pattern], others: tuple[str, ...] = ()) -> Catalogue:
    """The routines of patterns, what every library has, and others by their full names."""
    whole = load_catalogue(added=(pattern_root(topology, own, "patterns.yaml"),))
    gathers = (f"allgatherv/{EVEN}", f"allgatherv/{SKEWED}")
    classes = (*gathers, f"alltoallv/{GENERAL}", f"alltoallv/{ONE_LONG}")
    named = {*classes, *others}
    chosen = [a for a in whole.algorithms if a.name.startswith("pattern_") or a.full_name in named]
    return support.part(with_native(whole, chosen), whole)


#: An allgatherv in which one block is ten times as long as the others.
LONG = Pattern("one-long", "allgatherv", ((100,) * (RANKS - 1) + (1000,),))
#: What serves allgatherv: calls with about even blocks, and those with a long one.
EVEN, SKEWED = "ring", "pipelined_ring"


#: An alltoallv in which one block is twenty times as long as the others: of class 12.
LONG_PAIR = Pattern(
    "one-long-for-one",
    "alltoallv",
    tuple(tuple(2000 if (u, v) == (0, 1) else 100 for v in range(RANKS)) for u in range(RANKS)),
    is_class=True,
)
#: One in which each rank has something for the next one only: of class 5.
NEXT = Pattern(
    "next",
    "alltoallv",
    tuple(tuple(600 if v == (u + 1) % RANKS else 0 for v in range(RANKS)) for u in range(RANKS)),
    is_class=True,
)
#: Of even blocks, as those that the rules for all calls are measured with.
SAME = Pattern("same", "alltoallv", ((1000,) * RANKS,) * RANKS, is_class=True)
SAME_FOR_ALL = Pattern("same for all", "allgatherv", ((100,) * RANKS,))
#: What serves alltoallv: calls of no pattern with about even blocks, those with few blocks, and
#: those with one that is much longer than the others. FEW serves even blocks, too, if all are long.
GENERAL, FEW, ONE_LONG = "bruck_and_direct", "native", "own_windows"
#: What competes with GENERAL where calls adapt.
ADAPTS = ("pair", "ring", "simple")


def rules_of_classes(topology: Topology) -> tuple[Table, ...]:
    """Rules for classes; of those for one long block only the larger sizes have another."""
    found = load_catalogue()
    hosts = len(set(topology.ranks))

    def table(collective: str, communicator: str, *names: str, change: int = 0) -> Table:
        usual, *others = (default_candidate(found.find(collective, name)) for name in names)
        rules = [Rule(0, usual), *(Rule(change, one, (change - 1, change)) for one in others)]
        return Table.exactly(collective, communicator, RANKS, hosts, tuple(rules))

    return (
        table("allgatherv", "cluster", EVEN),
        table("allgatherv", name_of(LONG), EVEN, SKEWED, change=600),
        table("alltoallv", "cluster", GENERAL),
        table("alltoallv", name_of(LONG_PAIR), GENERAL, ONE_LONG, change=100),
        table("alltoallv", name_of(NEXT), FEW),
        table("alltoallv", name_of(SAME), GENERAL, FEW, change=1000),
        table("allgatherv", name_of(SAME_FOR_ALL), SKEWED),
    )


#: Groups of the first RANKS ranks and of the last, and how many there are.
GROUP, OTHER_GROUP, EVERYONE = "some", "others", 2 * RANKS


def with_groups(slots: int) -> Topology:
    """A cluster whose first hosts are a group, and whose last ones are another."""
    topology = support.cluster(EVERYONE, slots)
    halves = (topology.ranks[:RANKS], topology.ranks[RANKS:])
    first, last = (tuple(dict.fromkeys(ranks)) for ranks in halves)
    return replace(topology, groups=(Group(GROUP, first), Group(OTHER_GROUP, last)))


def patterns_of_both(slots: int) -> list[Pattern]:
    """Patterns of all ranks, and others of each group."""
    average = 300 if slots == 1 else 40000
    everyone = patterns(EVERYONE, average)[:2]
    own = patterns(RANKS, average)[: len(FAMILIES) if slots == 1 else 2]
    return [
        *(replace(one, name=f"all {one.name}") for one in everyone),
        *(replace(one, group=GROUP) for one in own),
        *(replace(one, name=f"last {one.name}", group=OTHER_GROUP) for one in own[:2]),
    ]


def decision_of_both(topology: Topology, found: Catalogue, own: list[Pattern]) -> DecisionTable:
    """One rule for each pattern, with its other orders; of the group a class for one long block."""
    made = decision(topology, found, own)
    known = {one.name for one in found.algorithms}
    orders = {
        name_of(one): dict.fromkeys((algorithm_name(one), *algorithm_names(one))) for one in own
    }

    def with_orders(table: Table) -> Table:
        names = [name for name in orders[table.communicator] if name in known]
        some = [default_candidate(found.find("alltoallv", name)) for name in names]
        return replace(table, rules=(Rule(0, some[0], None, tuple(some[1:])),))

    tables = [with_orders(one) if one.communicator in orders else one for one in made.tables]
    usual, long = (default_candidate(found.find("alltoallv", name)) for name in (GENERAL, ONE_LONG))
    rules = (Rule(0, usual), Rule(100, long, (99, 100)))
    hosts = len(topology.groups[0].hosts)
    one = replace(LONG_PAIR, group=GROUP)
    table = Table.exactly("alltoallv", name_of(one), RANKS, hosts, rules)
    return replace(made, tables=(*tables, table), patterns=(*made.patterns, one))


def decision(topology: Topology, found: Catalogue, own: list[Pattern]) -> DecisionTable:
    """One rule for each pattern: the routine of its order; and what serves other calls."""
    usual = support.decision(topology, found)
    seen = {group.name: group.topology for group in groups_of(topology)}
    tables = tuple(
        Table.exactly(
            "alltoallv", name_of(one), one.ranks, len(set(seen[one.group or WHOLE].ranks)),
            (Rule(0, default_candidate(found.find("alltoallv", algorithm_name(one)))),),
        )
        for one in own
    )  # fmt: skip
    if topology.rank_count == RANKS == len(set(topology.ranks)):
        ours = rules_of_classes(topology)
        replaced = {(t.collective, t.communicator) for t in ours}
        others = tuple(
            t
            for t in usual.tables
            if (t.collective, t.communicator) not in replaced and t.collective != "allgatherv"
        )
        usual = replace(usual, tables=(*others, *ours))
        own = [*own, LONG, LONG_PAIR, NEXT, SAME, SAME_FOR_ALL]
    return replace(usual, tables=(*usual.tables, *tables), patterns=tuple(own))
