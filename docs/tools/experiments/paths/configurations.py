"""The paper's configurations with Gsum, its Tables 1 to 4 and figures (Bongo et al., §6, §7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.paths import _theirs
from docs.tools.experiments.paths._figures import figures_of
from docs.tools.experiments.paths._kept import drawn_of, tables_of
from docs.tools.experiments.paths._trees import (
    FAST,
    SHAPES,
    TRACED,
    built,
    cluster,
    gsum,
    shaped,
)
from stagegen.inspection.findings import TIME_OF_CALL
from stagegen.inspection.look import looks_at
from stagegen.tune.reconfigure import SHARED

#: The paper's names without the cluster, such as nary8W on four hosts with eight ranks each.
FIRST = "nary"
CONFIGURATIONS = (FIRST, "quad", "binaryquad", "binary", "split", "split-2", "linked")

#: Those of NOW, whose 30 hosts are too many for two CPUs, on 8 × 4; `split` is its binary one.
OF_NOW = ("splitNOW", "resplitNOW")

#: Ten hosts with a rank each are Blade. Its n-ary tree is the one node that was the best there.
BLADE, OF_BLADE = (10, 1), (FIRST, "quad", "binary", "splitBlade")

#: Bytes of a sum; the paper has the greater ones on 4W only (§7.3).
SIZE, GREATER = 4, 256
WITH_GREATER = ("binary", "split-2")

#: What takes turns with a configuration besides the n-ary tree: theirs were compared directly.
RIVALS = {"split-2": "binary", "splitNOW": "quad", "resplitNOW": "split"}

#: Launches of each library, in turn, and sums in each. The paper had 20,000 and more.
LAUNCHES, CALLS = 5, 1000


def _measure(hosts: int, slots: int, shape: str, size: int, folder: Path) -> Any:
    file, topology = cluster(folder, hosts, slots)
    libraries = {
        name: built(folder, topology, shaped(topology, name), SHARED)
        for name in dict.fromkeys((FIRST, RIVALS.get(shape, FIRST), shape))
    }
    seconds: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(LAUNCHES):
        for name, made in libraries.items():
            seconds[name].append(gsum(file, folder, CALLS, made / FAST, size=size))
    events = (folder / "events.bin").absolute()
    variables = {"LIBCOLL_EVENTS": str(events)}
    traced = gsum(file, folder, CALLS // 2, libraries[shape] / TRACED, variables, size)
    tree = max(
        (look.tree for look in looks_at(events) if look.tree is not None),
        key=lambda one: len(one.series),
    )
    events.unlink()
    return {
        "shape": shape,
        "seconds": seconds,
        "traced_s": traced,
        **tables_of(tree),
        **drawn_of(tree),
    }


def _quotients(one: Mapping[str, Any], first: str) -> list[float]:
    """Return one configuration's time over that of this one, launch by launch."""
    times = one["seconds"]
    return [a / b for a, b in zip(times[first], times[one["shape"]], strict=True)]


def _report(found: Found) -> str:
    rows = []
    for point, one in found.items():
        quotients = _quotients(one, FIRST)
        theirs = _theirs.SPEEDUPS.get(point)
        spread = f" ({min(quotients):.2f}–{max(quotients):.2f})" if one["shape"] != FIRST else ""
        rows.append(
            [
                point,
                f"{1e6 * median(one['seconds'][FIRST]):.0f}",
                f"{1e6 * median(one['seconds'][one['shape']]):.0f}",
                f"{median(quotients):.2f}{spread}",
                "–" if theirs is None else f"{theirs:.2f}",
                f"{1e6 * one['traced_s']:.0f}",
            ]
        )
    titles = ["hosts × ranks, configuration", f"{FIRST}, µs", "this one, µs",
              "speed-up (least–greatest)", "theirs", "with TRACE=1, µs"]  # fmt: skip
    parts = [table(titles, rows), *_noise(found), *_rivals(found), *_tables(found)]
    for figure in figures_of(found):
        parts += [f"{figure.caption}:", f"![{figure.caption}](figures/{figure.name})"]
    return "\n\n".join(parts)


def _noise(found: Found) -> Iterator[str]:
    """Yield how far the n-ary tree's own times are apart."""
    told = []
    for hosts, slots in (*SHAPES, BLADE):
        own = [
            1e6 * median(one["seconds"][FIRST])
            for point, one in found.items()
            if point.startswith(f"{hosts} × {slots} ") and _size_of(point) == SIZE
        ]
        if own:
            told.append(f"{min(own):.0f} to {max(own):.0f} µs on {hosts} × {slots}")
    if told:
        yield (
            f"From one measurement to the next, the n-ary tree alone takes {'; '.join(told)}. So a "
            "speed-up whose launches are on both sides of 1 is noise."
        )


def _rivals(found: Found) -> Iterator[str]:
    """Yield how configurations compare that took turns directly, with theirs."""
    rows = []
    for (shape, size), theirs in _theirs.OVER_RIVALS.items():
        one = found.get(point_of(8, 4, shape, size))
        if one is not None:
            quotients = _quotients(one, RIVALS[shape])
            spread = f"{min(quotients):.2f}–{max(quotients):.2f}"
            pair = f"`{shape}` over `{RIVALS[shape]}`"
            rows.append([pair, str(size), f"{median(quotients):.2f} ({spread})", f"{theirs:.2f}"])
    if rows:
        yield "Configurations on 8 × 4 over others, in the same launches (§6.3, §7.3):"
        yield table(["", "bytes", "speed-up (least–greatest)", "theirs"], rows)


def _tables(found: Found) -> Iterator[str]:
    """Yield Tables 1 to 4, each of the configuration that is the nearest to theirs."""
    nary, binary, split = (
        found.get(point) for point in ("4 × 8 nary", "4 × 8 binary", "8 × 4 split")
    )
    if nary is not None:
        yield "Table 1, order of departures by order of arrivals, in %, `4 × 8 nary` (theirs: 8W):"
        yield _orders(nary["orders"])
    if any(one is not None and TIME_OF_CALL not in one["stages"] for one in (binary, split)):
        yield (
            "Tables 2 to 4 are of an earlier run. In it, a node of the cluster root counted as "
            "host subtree if its contributors were all on its own host."
        )
    if binary is not None:
        yield "Table 2, stages of the slowest rank, in µs, `4 × 8 binary` (theirs: `binary8W`):"
        yield _stages(binary["stages"])
        yield "Table 3, parts of the tree, mean µs, `4 × 8 binary` (theirs: `binary8W`):"
        yield _parts(binary["ends"], _theirs.PARTS)
    if split is not None:
        yield (
            "Table 4, the same by how many messages between hosts are on the way to the root, "
            "`8 × 4 split` (theirs: NOW, binary):"
        )
        yield _parts(split["parts"], _theirs.BY_MESSAGES)


def _orders(ours: list[list[float]]) -> str:
    """Return Table 1; theirs is beside ours if the node has as many contributors."""
    has_theirs = len(ours) == len(_theirs.ORDERS)

    def cell(i: int, k: int) -> str:
        own = f"{100 * ours[i][k]:.1f}"
        return f"{own} ({_theirs.ORDERS[i][k]:.1f})" if has_theirs else own

    places = range(len(ours))
    return table(
        ["ours (theirs)" if has_theirs else "", *(f"{k + 1}. departure" for k in places)],
        [[f"{i + 1}. arrival", *(cell(i, k) for k in places)] for i in places],
    )


def _stages(ours: Mapping[str, Any]) -> str:
    """Return Table 2; rows that only theirs has come after ours, and the time of a call is last."""
    columns = ("mean", "median", "stdev", "min", "max", "p10", "p90")
    none = ["–"] * len(columns)

    def cells(name: str) -> list[str]:
        spread, theirs = ours.get(name), _theirs.STAGES.get(name)
        own = none if spread is None else [f"{1e6 * spread[f'{c}_s']:.0f}" for c in columns]
        return [*own, *(none if theirs is None else [f"{value:g}" for value in theirs])]

    names = sorted(dict.fromkeys((*ours, *_theirs.STAGES)), key=lambda name: name == TIME_OF_CALL)
    first, *others = columns
    titles = ["stage", *columns, f"theirs: {first}", *others]
    return table(titles, [[name, *cells(name)] for name in names])


def _parts(ours: Mapping[str, Any], theirs: Mapping[str, Mapping[str, float]]) -> str:
    names = [name for name in next(iter(ours.values())) if name != "rank"]

    def cells(title: str, part: str) -> list[str]:
        own = f"{1e6 * ours[title][part]:.0f}"
        return [own, f"{theirs[title][part]}" if part in theirs.get(title, {}) else "–"]

    titles = [
        word for title, end in ours.items() for word in (f"{title} ({end['rank']})", "theirs")
    ]
    rows = [[part, *(word for title in ours for word in cells(title, part))] for part in names]
    return table(["part", *titles], rows)


def point_of(hosts: int, slots: int, shape: str, size: int) -> str:
    """Return the name of a point."""
    return f"{hosts} × {slots} {shape}" + ("" if size == SIZE else f", {size} bytes")


def _size_of(point: str) -> int:
    return GREATER if point.endswith(f", {GREATER} bytes") else SIZE


def _pictures(found: Found) -> dict[Path, str]:
    return {Path("docs/figures") / one.name: one.svg for one in figures_of(found)}


_POINTS = (
    *((hosts, slots, shape, SIZE) for hosts, slots in SHAPES for shape in CONFIGURATIONS),
    *((8, 4, shape, SIZE) for shape in OF_NOW),
    *((*BLADE, shape, SIZE) for shape in OF_BLADE),
    *((8, 4, shape, GREATER) for shape in WITH_GREATER),
)

EXPERIMENT = Experiment(
    "configurations",
    "the paper's configurations with Gsum, its Tables 1 to 4 and its figures (PATHS, §6, §7)",
    {point_of(*one): partial(_measure, *one) for one in _POINTS},
    _report,
    Path("docs/paths.md"),
    pictures=_pictures,
)
