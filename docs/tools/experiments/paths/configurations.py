"""The paper's configurations with Gsum, and its Tables 1 to 4 (Bongo et al., §6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.paths._trees import (
    FAST,
    SHAPES,
    TRACED,
    built,
    cluster,
    gsum,
    shaped,
)
from stagegen.inspection.findings import Spread, TreeFindings
from stagegen.inspection.look import looks_at
from stagegen.tune.reconfigure import SHARED

#: The paper's names without the cluster, such as nary8W on four hosts with eight ranks each.
FIRST = "nary"
CONFIGURATIONS = (FIRST, "quad", "binaryquad", "binary", "split", "split-2", "linked")

#: Launches of each library, in turn, and sums in each. The paper had 20,000 and more.
LAUNCHES, CALLS = 3, 1000


def _measure(hosts: int, slots: int, shape: str, folder: Path) -> Any:
    file, topology = cluster(folder, hosts, slots)
    libraries = {
        name: built(folder, topology, shaped(topology, name), SHARED)
        for name in dict.fromkeys((FIRST, shape))
    }
    seconds: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(LAUNCHES):
        for name, made in libraries.items():
            seconds[name].append(gsum(file, folder, CALLS, made / FAST))
    events = (folder / "events.bin").absolute()
    variables = {"LIBCOLL_EVENTS": str(events)}
    traced = gsum(file, folder, CALLS // 2, libraries[shape] / TRACED, variables)
    tree = max(
        (look.tree for look in looks_at(events) if look.tree is not None),
        key=lambda one: len(one.series),
    )
    events.unlink()
    return {
        "seconds": median(seconds[shape]),
        "first_s": median(seconds[FIRST]),
        "traced_s": traced,
        **tables_of(tree),
    }


def tables_of(tree: TreeFindings) -> dict[str, Any]:
    """Return Tables 1 to 4: orders, stages of the slowest rank, parts by messages between hosts."""
    busiest, slowest = tree.busiest, tree.slowest
    return {
        "orders": [] if busiest is None else busiest.order_table(),
        "stages": {
            stage.title: Spread.of(seconds).to_json() for stage, seconds in slowest.stages.items()
        },
        "parts": {
            name: {"rank": rank.rank, **rank.parts()} for name, rank in tree.by_messages().items()
        },
    }


def _report(found: Found) -> str:
    rows = [
        [
            point,
            f"{1e6 * one['first_s']:.0f}",
            f"{1e6 * one['seconds']:.0f}",
            f"{one['first_s'] / one['seconds']:.2f}",
            f"{1e6 * one['traced_s']:.0f}",
        ]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks, configuration", f"{FIRST}, µs", "this one, µs", "speed-up",
              "with TRACE=1, µs"]  # fmt: skip
    parts = [table(titles, rows)]
    for hosts, slots in SHAPES:
        own = {p: one for p, one in found.items() if p.startswith(f"{hosts} × {slots} ")}
        if own:
            # The tables of points that were carried from the page are those that it had.
            detailed = [p for p in own if "stages" in own[p]]
            point = min(detailed, key=lambda p: float(own[p]["seconds"]), default=None)
            parts += _tables(f"{hosts} × {slots}", point, own) if point else []
    return "\n\n".join(parts)


def _tables(cluster_name: str, point: str, own: Mapping[str, Any]) -> Iterator[str]:
    best = own[point]
    first = own.get(f"{cluster_name} {FIRST}")
    if first is not None and "orders" in first:
        size = len(first["orders"])
        yield f"Order of departures by order of arrivals, `{cluster_name} {FIRST}` (Table 1):"
        yield table(
            ["", *(f"{i}. departure" for i in range(1, size + 1))],
            [
                [f"{i}. arrival", *(f"{100 * share:.1f} %" for share in row)]
                for i, row in enumerate(first["orders"], 1)
            ],
        )
    yield f"Stages of the slowest rank, in µs, `{point}` (Table 2):"
    columns = ("mean", "median", "stdev", "min", "max", "p10", "p90")
    yield table(
        ["stage", *columns],
        [
            [name, *(f"{1e6 * spread[f'{column}_s']:.0f}" for column in columns)]
            for name, spread in best["stages"].items()
        ],
    )
    ends = best["parts"]
    yield (
        f"Parts of the tree, mean µs, `{point}`; ranks by how many messages between hosts are on "
        "their way to the root (Tables 3 and 4):"
    )
    names = [name for name in next(iter(ends.values())) if name != "rank"]
    yield table(
        ["part", *(f"{title} ({end['rank']})" for title, end in ends.items())],
        [[name, *(f"{1e6 * end[name]:.0f}" for end in ends.values())] for name in names],
    )


EXPERIMENT = Experiment(
    "configurations",
    "the paper's configurations with Gsum, and Tables 1 to 4 (PATHS, §6)",
    {
        f"{hosts} × {slots} {shape}": partial(_measure, hosts, slots, shape)
        for hosts, slots in SHAPES
        for shape in CONFIGURATIONS
    },
    _report,
    Path("docs/paths.md"),
)
