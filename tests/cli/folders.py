"""Generated folders of routines, as a session or a library has them."""

from __future__ import annotations

import re
from pathlib import Path

from stagegen.generate import Renderer
from stagegen.generate.routines import c_parameters
from stagegen.generate.sources import applicable, runtime_sources
from stagegen.library.rules import CRule, CTable
from stagegen.repository import load_catalogue
from stagegen.topology import load_topology
from tests.schedule.rated import with_rates
from tests.strategies import make_topology

CLUSTERS = {
    "fig-3-2": load_topology("topologies/fig-3-2.yaml"),
    "one switch": make_topology([5], []),
    "cyclic": make_topology([3, 3, 2], [0, 1], ranks=[f"n{i * 3 % 8}" for i in range(8)]),
    "slots": make_topology([3, 2], [0], slots={"n0": 3, "n4": 2}),
    "capacity 2": with_rates(make_topology([3, 3], [0]), {}, {"s1": 2 * 10**9}),
    "rates": with_rates(
        make_topology([4, 4, 3], [0, 0]), {"n1": 25 * 10**8}, {"s1": 2 * 10**9, "s2": 5 * 10**8}
    ),
}
ARRAY = re.compile(r"static const (?:short|int) (\w+)\[\] = \{([^{}]*)\};")
_RULES = {
    "alltoall": [
        ("148", "bruck", {"radix": 2}),
        ("4096", "aapc_receiver_partial", {"block_size": 3}),
        ("INT_MAX", "aapc_receiver_window", {"segment_size": 8192, "window": 4}),
    ],
    "bcast": [("INT_MAX", "topology_kary", {"arity": 4, "segment_size": 8192})],
}


def write_folder(topology, folder, *only):
    """Write all routines that the topology can have, or some; return their algorithms."""
    catalogue = load_catalogue()
    algorithms = applicable(catalogue, topology)
    if only:
        algorithms = tuple(a for a in algorithms if a.routine in only)
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash)
    (folder / "src").mkdir(parents=True)
    files = runtime_sources(topology, catalogue, algorithms, renderer)
    if not only:
        tables = list(_tables(topology, algorithms))
        files["rules.c"] = renderer.render("libcoll/rules.c.j2", {"tables": tables})
    for name, text in files.items():
        (folder / "src" / name).write_text(text, encoding="utf-8")
    (folder / "topology.yaml").write_text(topology.to_yaml(), encoding="utf-8")
    return algorithms


def _tables(topology, algorithms):
    index = {(a.collective, a.name): number for number, a in enumerate(algorithms)}
    for collective, rules in _RULES.items():
        rows = tuple(
            CRule(upto, index[collective, option], option, c_parameters(values))
            for upto, name, parameters in rules
            for option, values in ((name, parameters), ("native", {}))
        )
        count = topology.rank_count
        yield CTable(f"{collective}_cluster", collective, "cluster", 0, count, str(count), rows)


def scheduled(topology) -> list[str]:
    """The routines of a topology that have tables."""
    return sorted(a.routine for a in applicable(load_catalogue(), topology) if a.has_tables)


def edit(file: Path, old: str, new: str) -> None:
    """Replace the first of a text in a file, which has it."""
    text = file.read_text()
    assert old in text, old
    file.write_text(text.replace(old, new, 1))
