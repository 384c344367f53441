"""``stagegen compare``: named candidates of the catalogue in turn in one job, beside the bound."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from stagegen.catalogue import Catalogue, Collective, applicable, load_catalogue, with_native
from stagegen.cli._arrivals import fitting
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import (
    format_option,
    launcher_option,
    mpicc_option,
    print_json,
    topology_option,
    tree_option,
)
from stagegen.cli._parts import added_to
from stagegen.cli._sizes import sizes_option, timed
from stagegen.cli._timing import Chosen, delays_seed_option, timing_of, timing_options
from stagegen.cli._tune_log import LOG, new_header
from stagegen.errors import InputError
from stagegen.generate import Renderer, measuring_sources, session_build
from stagegen.generate.timings import require_sound
from stagegen.measure.arrivals import EXPERIMENTS
from stagegen.measure.iterations import Iterations
from stagegen.measure.launch.base import Environment
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.records import Candidate
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import WHOLE, Topology, load_topology
from stagegen.tune.bounds import bound_or_none, patience
from stagegen.tune.candidates import algorithms_of, handles
from stagegen.tune.contest import Contestant, named_candidate, require_right, time_in_turn
from stagegen.tune.scope import Options

#: Repetitions unless ranks come late.
REPETITIONS = 9

_ROOT = 0
"""The root of collectives that have one, as in drivers/session.c."""

_COMMAND = "stagegen compare"
"""The command that the headers of the generated files name."""


@dataclass(frozen=True)
class _Row:
    """A candidate at a size; the bound is in seconds, at the rates of the measured links."""

    collective: str
    size: int
    contestant: Contestant
    bound: float | None

    @property
    def over_bound(self) -> float | None:
        return self.contestant.seconds.median / self.bound if self.bound else None

    def to_json(self) -> dict[str, Any]:
        seconds, ratio = self.contestant.seconds, self.contestant.ratio
        return {
            "collective": self.collective,
            "size": self.size,
            "routine": self.contestant.candidate.spec,
            "median_s": seconds.median,
            "interval_s": [seconds.low, seconds.high],
            "bound_s": self.bound,
            "over_bound": self.over_bound,
            "ratio": ratio.median,
            "ratio_interval": [ratio.low, ratio.high],
            "repetitions": seconds.count,
            "seconds": list(self.contestant.repetitions),
            **({"late": self.contestant.late.to_json()} if self.contestant.late else {}),
        }


@click.command()
@topology_option
@click.option("--collective", required=True, metavar="NAME", help="The collective to time.")
@click.option(
    "--algorithms",
    required=True,
    metavar="A,B:x=1,…",
    help="Candidates: algorithms of the catalogue, native included, with parameters that differ "
    "from the defaults. The first is the reference for the others.",
)
@tree_option
@sizes_option()
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    help=f"Repetitions of each candidate; default: {REPETITIONS}, more if a call takes "
    "milliseconds, fewer if it takes seconds. If ranks come late: experiments, default "
    f"{EXPERIMENTS}.",
)
@timing_options
@delays_seed_option
@launcher_option
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder of the program and of the log; default: generated/NAME/build/compare.",
)
@mpicc_option
@format_option
def command(
    topology_file: str,
    collective: str,
    algorithms: str,
    trees: tuple[Path, ...],
    sizes: tuple[int, ...],
    repetitions: int | None,
    timing: Chosen,
    computation: float,
    metric: str | None,
    iterations: Iterations,
    seed: int,
    launcher: str | None,
    output: Path | None,
    mpicc: str | None,
    output_format: str,
) -> None:
    """Time algorithms of the catalogue against each other.

    Checks them first, byte by byte, then times them in turn in one job.
    """
    topology = load_topology(topology_file)
    full = load_catalogue(added=added_to(topology_file, topology, trees))
    described = full.collective(collective)
    points = timed(described, sizes)
    catalogue, candidates = _find(full, topology, collective, algorithms.split(","), points)
    folder = output or Path("generated") / topology.name / "build" / "compare"
    console = Console(stderr=True, highlight=False)
    chosen, toolchain, why = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
    console.print(why)
    how = timing_of(timing, computation, metric, iterations, seed)
    fitting(how.arrivals, topology, (WHOLE,), asked=True)
    require_sound(timing.mechanism, toolchain)
    options = Options((collective,), sizes, how, 0.0)
    log = LogWriter(folder / LOG, new_header(topology, catalogue, options))
    hashes = (topology.hash, catalogue.hash)
    renderer = Renderer(_COMMAND, topology.name, *hashes, catalogue.templates)
    parts = (bound.collective for candidate in candidates for bound in candidate.bound)
    build = session_build(topology, catalogue, tuple(dict.fromkeys((collective, *parts))))
    files = measuring_sources(build, renderer, (timing.mechanism,))
    computes = how.computation_ms > 0
    starter = SessionStarter(folder, files, toolchain, chosen, topology, log, computes=computes)
    source = LiveSource(
        starter,
        log,
        lambda name, size: patience(topology, catalogue.collective(name), size, _ROOT),
        start_check=starter.start_here if chosen.emulates else None,
    )
    many = repetitions or (EXPERIMENTS if how.arrivals else REPETITIONS)
    with closing(log), closing(source):
        require_right(source, collective, candidates)
        contests = [
            (size, time_in_turn(source, collective, size, candidates, many, timing=how))
            for size in track(points, "comparing", console=console, transient=True)
        ]
    environment = environments(log.written)[-1]
    rows = [
        _Row(collective, size, one, _bound(topology, described, size, environment))
        for size, contestants in contests
        for one in contestants
    ]
    if output_format == "json":
        print_json({"environment": environment.to_json(), "rows": [row.to_json() for row in rows]})
    else:
        _print_table(rows)


def _find(
    full: Catalogue,
    topology: Topology,
    collective: str,
    specs: Sequence[str],
    sizes: Sequence[int],
) -> tuple[Catalogue, tuple[Candidate, ...]]:
    """Return the candidates, each once, and the catalogue with only what they need.

    Raises:
        InputError: a name is unknown, or its algorithm cannot run on this cluster or at a size.
    """
    able = applicable(full, topology)
    known = {a.name: a for a in able if a.collective == collective}
    serving = {f"{a.collective}/{a.name}": a for a in able}
    algorithms = {**serving, **known}
    candidates = tuple(dict.fromkeys(named_candidate(algorithms, spec) for spec in specs))
    for candidate in candidates:
        for size in sizes:
            if not handles(candidate, size, topology.rank_count, algorithms):
                raise InputError(
                    f"{candidate.spec} cannot do messages of {size} bytes; leave out the size or "
                    "the algorithm"
                )
    chosen = [one for candidate in candidates for one in algorithms_of(candidate, algorithms)]
    return replace(full, algorithms=with_native(full, chosen)), candidates


def _bound(
    topology: Topology, collective: Collective, size: int, environment: Environment
) -> float | None:
    bound = bound_or_none(topology, collective, size, _ROOT)
    return None if bound is None else bound.seconds / environment.scale


def _print_table(rows: list[_Row]) -> None:
    first = rows[0].contestant.candidate.spec
    table = Table(box=None, header_style="bold", caption=f"ratio: to {first}")
    for title in ("size", "median", "interval", "× bound", "ratio", "interval", "n"):
        table.add_column(title, justify="right")
    table.add_column("routine")
    for row in rows:
        seconds, ratio = row.contestant.seconds, row.contestant.ratio
        table.add_row(
            format_bytes(row.size),
            format_seconds(seconds.median),
            f"{format_seconds(seconds.low)} – {format_seconds(seconds.high)}",
            f"{row.over_bound:.3f}" if row.over_bound else "–",
            f"{ratio.median:.3f}",
            f"{ratio.low:.3f} – {ratio.high:.3f}",
            str(seconds.count),
            row.contestant.candidate.spec,
        )
    Console(width=120 if not Console().is_terminal else None).print(table)
