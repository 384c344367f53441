"""``stagegen bench``: native and tuned in turn in one job, beside the lower bound."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from stagegen.catalogue import Collective, load_catalogue
from stagegen.cli._arrivals import fitting
from stagegen.cli._bench_tables import Asked, bench_tables
from stagegen.cli._checks import require_with
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import (
    format_option,
    launcher_option,
    mpicc_option,
    print_json,
    topology_option,
)
from stagegen.cli._parts import register_launchers
from stagegen.cli._sizes import sizes_option, timed
from stagegen.cli._timing import Chosen, arrivals_chosen, delays_seed_option, timing_of
from stagegen.errors import InputError
from stagegen.generate.timings import BUILT_IN
from stagegen.measure.arrivals import EXPERIMENTS
from stagegen.measure.comparable import differences
from stagegen.measure.comparison import Bench, Comparison
from stagegen.measure.launch.base import Environment
from stagegen.measure.live import environments
from stagegen.measure.log import read_log
from stagegen.measure.statistics import Summary, summarize
from stagegen.measure.timing import METRICS
from stagegen.parts import templates_beside
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import WHOLE, Topology, load_topology
from stagegen.tune.bounds import bound_or_none, patience
from stagegen.tune.recorded import LOG

#: Repetitions unless ranks come late.
REPETITIONS = 9

_ROOT = 0
"""The root of collectives that have one, as in drivers/bench.c."""


@dataclass(frozen=True)
class _Row:
    """A comparison in numbers; seconds are medians."""

    comparison: Comparison
    native: Summary
    tuned: Summary
    bound: float | None

    @property
    def speedup(self) -> float:
        return self.native.median / self.tuned.median

    def to_json(self) -> dict[str, Any]:
        return {
            "collective": self.comparison.collective,
            "size": self.comparison.size,
            "native_s": self.native.median,
            "tuned_s": self.tuned.median,
            "speedup": self.speedup,
            "bound_s": self.bound,
            "routine": self.comparison.routine,
            "native_interval_s": [self.native.low, self.native.high],
            "tuned_interval_s": [self.tuned.low, self.tuned.high],
            "repetitions": self.native.count,
        }


@click.command()
@topology_option
@click.option(
    "--library",
    "libraries",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The generated folder. If given several times, compare the routines that the tables of "
    "these folders choose.",
)
@launcher_option
@click.option("--collectives", metavar="A,B", help="Collectives to compare; default: all.")
@sizes_option(default="1:256KiB")
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    help=f"Repetitions of each routine; default: {REPETITIONS}, more if a call takes milliseconds, "
    f"fewer if it takes seconds. With --arrivals: experiments, default {EXPERIMENTS}.",
)
@click.option(
    "--arrivals",
    metavar="PLAN",
    help="Ranks come late: imbalance:F (random delays below F message times, or below a time such "
    "as 20ms), replay:15=2ms (these ranks, by these times) or FILE#SITE (as late as in a recorded "
    "program); see docs/timing.md.",
)
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    help="With --arrivals or several libraries: the time of a call; see docs/timing.md.",
)
@delays_seed_option
@mpicc_option
@format_option
def command(
    topology_file: str,
    libraries: tuple[Path, ...],
    launcher: str | None,
    collectives: str | None,
    sizes: tuple[int, ...],
    repetitions: int | None,
    arrivals: str | None,
    metric: str | None,
    seed: int,
    mpicc: str | None,
    output_format: str,
) -> None:
    """Compare a generated library with the native routines.

    With --arrivals, or with several libraries, compare the routines that their tables choose, in
    turn in one job.
    """
    topology = load_topology(topology_file)
    register_launchers(topology_file)
    require_with("seed", "--arrivals", arrivals)
    if arrivals or metric or len(libraries) > 1:
        chosen = Chosen(BUILT_IN["barrier"])
        if arrivals:
            chosen = arrivals_chosen(arrivals, topology_file)
        timing = timing_of(chosen, metric=metric, seed=seed)
        fitting(timing.arrivals, topology, (WHOLE,), asked=True)
        named = tuple(collectives.split(",")) if collectives else None
        many = repetitions or (EXPERIMENTS if arrivals else REPETITIONS)
        asked = Asked(topology, topology_file, libraries, named, sizes, many, timing, chosen)
        bench_tables(asked, launcher, mpicc, output_format == "json")
        return
    _bench(
        topology_file,
        topology,
        libraries[0],
        launcher,
        collectives,
        sizes,
        repetitions or REPETITIONS,
        mpicc,
        output_format,
    )


def _bench(
    topology_file: str,
    topology: Topology,
    library: Path,
    launcher: str | None,
    collectives: str | None,
    sizes: tuple[int, ...],
    repetitions: int,
    mpicc: str | None,
    output_format: str,
) -> None:
    """Compare the built library, preloaded, with the native routines, and print it."""
    catalogue = load_catalogue(added=templates_beside(library))
    known = {one.name: one for one in catalogue.descriptions}
    names = tuple(known) if collectives is None else tuple(collectives.split(","))
    if unknown := set(names) - set(known):
        listed = ", ".join(sorted(unknown))
        raise InputError(f"unknown collective {listed}; choose from {', '.join(known)}")
    console = Console(stderr=True, highlight=False)
    chosen, toolchain, why = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
    console.print(why)
    with closing(Bench(chosen, topology, library, toolchain)) as bench:
        differ = _tell_differences(library, bench.environment, console)
        points = [(known[name], size) for name in names for size in timed(known[name], sizes)]
        rows = [
            _measure(bench, topology, collective, size, repetitions)
            for collective, size in track(points, "comparing", console=console, transient=True)
        ]
    if output_format == "json":
        environment = bench.environment.to_json()
        forms = [row.to_json() for row in rows]
        print_json({"environment": environment, "environments_differ": differ, "rows": forms})
    else:
        _print_table(rows)


def _tell_differences(library: Path, now: Environment, console: Console) -> list[str]:
    """Say how this job differs from those that the library was tuned by; return the facts."""
    path = library / LOG
    tuned = environments(read_log(path)[1]) if path.is_file() else []
    found = {one.fact: one.text for then in tuned for one in differences(then, now)}
    for text in found.values():
        console.print(f"another environment than the tuning's: {text}", soft_wrap=True)
    if not now.representative:
        console.print("; ".join(now.notes) or "not representative: this is not the cluster")
    return list(found)


def _measure(
    bench: Bench, topology: Topology, collective: Collective, size: int, repetitions: int
) -> _Row:
    scale = bench.environment.scale
    seconds = patience(topology, collective, size, _ROOT) / scale
    comparison = bench.compare(collective.name, size, repetitions, seconds)
    bound = bound_or_none(topology, collective, size, _ROOT)
    return _Row(
        comparison=comparison,
        native=summarize(comparison.native),
        tuned=summarize(comparison.tuned),
        bound=None if bound is None else bound.seconds / scale,
    )


def _print_table(rows: list[_Row]) -> None:
    table = Table(box=None, header_style="bold")
    for title in ("collective", "size", "native", "tuned", "bound", "speed-up", "tuned/bound"):
        table.add_column(title, justify="left" if title == "collective" else "right")
    table.add_column("served by")
    for row in rows:
        table.add_row(
            row.comparison.collective,
            format_bytes(row.comparison.size),
            format_seconds(row.native.median),
            format_seconds(row.tuned.median),
            format_seconds(row.bound) if row.bound else "–",
            f"{row.speedup:.2f}",
            f"{row.tuned.median / row.bound:.2f}" if row.bound else "–",
            row.comparison.routine,
        )
    Console(width=120 if not Console().is_terminal else None).print(table)
