"""Gsum, and a program with an allreduce of its own: native, the first tree, the found one."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.experiments import lab, results
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.paths import reconfigured
from docs.tools.experiments.paths._trees import (
    FAST,
    SHAPES,
    built,
    cluster,
    shaped,
)
from stagegen.trees import ConfiguredTree, read_tree
from stagegen.tune.reconfigure import MESSAGES, SHARED

#: Programs with their arguments, and what is measured: steps or sums of about 1.5 ms.
PROGRAMS = {"gsum": ("1200", "4"), "stencil": ("4", "1200")}

LAUNCHES = 3

NATIVE, FIRST, FOUND = "native", "first", "found"

#: If no search has been run, what was fastest by its result stands in for it.
STAND_IN = "binary"


def _measure(hosts: int, slots: int, program: str, folder: Path) -> Any:
    file, topology = cluster(folder, hosts, slots)
    tree, on_host, is_found = _found(hosts, slots, file)
    libraries = {
        NATIVE: None,
        FIRST: built(folder, topology, shaped(topology, "nary").renamed(FIRST), MESSAGES) / FAST,
        FOUND: built(folder, topology, tree.renamed(FOUND), on_host) / FAST,
    }
    binary = lab.compiled(folder.parents[1] / "compiled", program)
    seconds: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(LAUNCHES):
        for name, library in libraries.items():
            begin = time.monotonic()
            lab.run(file, binary, *PROGRAMS[program], preload=library)
            whole = time.monotonic() - begin
            begin = time.monotonic()
            lab.run(file, binary, *_short(program), preload=library)
            seconds[name].append(whole - (time.monotonic() - begin))
    return {
        "seconds": {name: median(times) for name, times in seconds.items()},
        "is_found": is_found,
    }


def _short(program: str) -> tuple[str, ...]:
    """Return arguments for a run of one step: the time of start and end is taken off."""
    return ("1", "4", "0") if program == "gsum" else ("4", "1")


def _found(hosts: int, slots: int, file: Path) -> tuple[ConfiguredTree, int, bool]:
    """Return what the search for an allreduce found on this cluster, if it was measured."""
    top = results.top_of("paths")
    folder = results.folder_of(reconfigured.EXPERIMENT, f"{hosts} × {slots} allreduce", top)
    result = folder / "search" / "result.tree.yaml"
    if not result.exists():
        _, topology = cluster(file.parent, hosts, slots)
        return shaped(topology, STAND_IN), SHARED, False
    _, topology = cluster(file.parent, hosts, slots)
    return read_tree(result, topology), reconfigured.on_host_of(folder / "search"), True


def _report(found: Found) -> str:
    names = (NATIVE, FIRST, FOUND)
    rows = [
        [
            point if one["is_found"] else f"{point} (`{STAND_IN}` instead of a search)",
            *(f"{one['seconds'][name]:.2f}" for name in names),
            f"{one['seconds'][FIRST] / one['seconds'][FOUND]:.2f}",
            f"{one['seconds'][NATIVE] / one['seconds'][FOUND]:.2f}",
        ]
        for point, one in found.items()
    ]
    titles = ["hosts × ranks, program", "native, s", "first tree, s", "found tree, s",
              "first / found", "native / found"]  # fmt: skip
    return table(titles, rows)


EXPERIMENT = Experiment(
    "program",
    "whole programs: Gsum, and a stencil with an allreduce in each step",
    {
        f"{hosts} × {slots} {program}": partial(_measure, hosts, slots, program)
        for hosts, slots in SHAPES
        for program in PROGRAMS
    },
    _report,
    Path("docs/paths.md"),
)
