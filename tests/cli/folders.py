"""Generated folders of routines, as a session or a library has them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

from stagegen.catalogue import applicable, load_catalogue, runnable
from stagegen.generate import Build, Renderer, write_files
from stagegen.generate.features import with_features
from stagegen.generate.pattern_templates import pattern_root
from stagegen.generate.routines import c_parameters
from stagegen.generate.sources import runtime_sources
from stagegen.library.rules import CRule, CTable
from stagegen.parts.find import parts_file
from stagegen.parts.trees import root_of
from stagegen.patterns import make_pattern
from stagegen.topology import Group, load_topology, topology_yaml
from stagegen.trees import make_tree, shape_of
from stagegen.tune.shapes import Shape
from tests.schedule.rated import with_rates
from tests.strategies import make_topology

#: No link above its switch carries its messages.
GROUP = Group("leaf", ("n1", "n2", "n3", "n4"))
CLUSTERS = {
    "fig-3-2": load_topology("topologies/fig-3-2.yaml"),
    "one switch": make_topology([5], []),
    "cyclic": make_topology([3, 3, 2], [0, 1], ranks=[f"n{i * 3 % 8}" for i in range(8)]),
    "slots": make_topology([3, 2], [0], slots={"n0": 3, "n4": 2}),
    "capacity 2": with_rates(make_topology([3, 3], [0]), {}, {"s1": 2 * 10**9}),
    "rates": with_rates(
        make_topology([4, 4, 3], [0, 0]), {"n1": 25 * 10**8}, {"s1": 2 * 10**9, "s2": 5 * 10**8}
    ),
    "groups": replace(
        make_topology(
            [2, 2, 2], [0, 1], slots={"n0": 2}, ranks=[f"n{i * 5 % 6}" for i in range(7)]
        ),
        groups=(Group("left", ("n3", "n0", "n1")), Group("one-each", ("n0", "n2", "n4"))),
    ),
    "group under a fast link": replace(
        with_rates(make_topology([1, 4], [0]), {}, {"s1": 4 * 10**9}), groups=(GROUP,)
    ),
    "group under a slow link": replace(
        with_rates(make_topology([1, 4], [0]), {}, {"s1": 5 * 10**8}), groups=(GROUP,)
    ),
}
ARRAY = re.compile(r"static const (?:short|int|struct \w+) (\w+)\[\] = \{([^;=]*)\};")
_RULES = {
    "alltoall": [
        ("148", "bruck", {"radix": 2}),
        (
            "4096",
            "aapc_receiver_partial",
            {"block_size": 3, "receives_ahead": 2, "segment_size": 8192, "tail": 0},
        ),
        (
            "INT_MAX",
            "aapc_receiver_window",
            {"receives_ahead": 2, "segment_size": 8192, "tail": 8192, "window": 4},
        ),
    ],
    "bcast": [("INT_MAX", "topology_kary", {"arity": 4, "segment_size": 8192})],
}


def write_folder(topology, folder, *only, added=()):
    """Write all routines that the topology can have, or some; return them.

    Templates that are added are kept in the folder, too.
    """
    catalogue = load_catalogue(added=added)
    algorithms = runnable(catalogue, topology)
    if only:
        algorithms = tuple(a for a in algorithms if a.routine in only)
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash, catalogue.templates)
    (folder / "src").mkdir(parents=True)
    build = Build.of(topology, catalogue, algorithms)
    files = runtime_sources(build, renderer)
    if not only:
        tables = list(_tables(build))
        made = renderer.render("libcoll/rules.c.j2", {"tables": tables})
        files["rules.c"] = with_features(made, frozenset(), "rules.c.j2")
    for name, text in files.items():
        (folder / "src" / name).write_text(text, encoding="utf-8")
    (folder / "topology.yaml").write_text(topology_yaml(topology), encoding="utf-8")
    write_files(folder, parts_file(added))
    return build.routines


def own_routines(topology):
    """The templates of a pattern and of a tree of the topology's ranks."""
    pattern = replace(make_pattern("zipf", topology.rank_count, 300, 3), name="zipf")
    tree = make_tree(topology, shape_of("flat"), "flat")
    return pattern_root(topology, [pattern], "patterns.yaml"), root_of([tree], topology)


def _tables(build):
    """Tables of the whole and of each group, with the same choices."""
    index = {(r.collective, r.algorithm, r.group): r.index for r in build.routines}
    for group, (collective, rules) in product(build.groups, _RULES.items()):
        rows = tuple(
            CRule(last, _find(index, collective, option, group), option, c_parameters(parameters))
            for last, name, own in rules
            for option, parameters in ((name, own), ("native", {}))
        )
        ranks = group.topology.ranks
        shape = Shape.of(len(set(ranks)), len(ranks))
        hosts, per_host = ((str(n), str(n)) for n in (shape.hosts, shape.ranks_per_host))
        name = f"{collective}_cluster{group.suffix}"
        yield CTable(name, collective, "cluster", group.number, shape, hosts, per_host, True, rows)


def _find(index, collective, name, group):
    of_group = index.get((collective, name, group.number))
    return index[collective, name, 0] if of_group is None else of_group


def scheduled(topology) -> list[str]:
    """The routines of a topology that have tables; some only use others that have."""
    found = (a for a in applicable(load_catalogue(), topology) if a.has_tables and not a.uses)
    return sorted(algorithm.routine for algorithm in found)


def file_of_tables(folder: Path, routine: str) -> Path:
    """The file that has a routine's tables."""
    return folder / "src" / f"{routine}.tables.h"


def edit(file: Path, old: str, new: str) -> None:
    """Replace the first of a text in a file, which has it."""
    text = file.read_text()
    assert old in text, old
    file.write_text(text.replace(old, new, 1))
