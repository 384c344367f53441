"""``stagegen tune``: from a topology file to a folder in which ``make install`` works.

Runs the stages in order: topology, schedules and routines, measuring, decision, library,
report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.cli._options import launcher_option, topology_option
from stagegen.cli._sizes import parse_sizes
from stagegen.cli._tune_log import LOG, new_header, read_tuning
from stagegen.errors import MeasurementError
from stagegen.generate import Renderer, Toolchain, measuring_sources, session_build
from stagegen.generate.write import write_file
from stagegen.library import write_library
from stagegen.library.folder import COMMAND
from stagegen.measure.launch.base import Environment, Launcher
from stagegen.measure.launch.registry import choose_launcher
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter
from stagegen.measure.records import TIMINGS, Timing
from stagegen.measure.source import LogSource, Source
from stagegen.report import render_report
from stagegen.report.bounds import patience
from stagegen.topology import Topology, load_topology
from stagegen.tune.communicators import default_names, find_communicators
from stagegen.tune.scope import Options
from stagegen.tune.tuner import Tuned, steps, tune

#: Seconds of measured time per race after which no further round begins.
BUDGET = 20.0

#: A day: more is taken for a mistake, and JSON cannot hold infinity.
BUDGET_MOST = 86_400.0


@dataclass(frozen=True)
class _Run:
    """One call of the command: what it works on."""

    topology: Topology
    catalogue: Catalogue
    output: Path
    console: Console


@click.command()
@topology_option
@launcher_option
@click.option("--collectives", metavar="A,B", help="Collectives to tune; default: all.")
@click.option(
    "--communicators",
    metavar="A,B",
    help="Communicators to tune for: whole, groups of the file, per-switch, per-host, half, or "
    "numbers of ranks; default: whole and all groups.",
)
@click.option(
    "--sizes",
    callback=parse_sizes,
    default="1:256KiB",
    show_default=True,
    help="Message sizes: FROM:TO (1, 64, 512, 1Ki, 2Ki, …) or a list A,B,….",
)
@click.option("--timing", type=click.Choice(TIMINGS), default="barrier", show_default=True)
@click.option(
    "--computation",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="With --timing computation: thousands of operations before each call.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, max=BUDGET_MOST),
    default=BUDGET,
    show_default=True,
    help="Seconds of measured time for a size, after which no repetitions are added.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder to write; default: generated/NAME.",
)
@click.option("--resume", is_flag=True, help="Go on where the folder's log ends.")
@click.option(
    "--from-log",
    "log_file",
    type=click.Path(path_type=Path),
    help="Decide and generate from a log; measure nothing.",
)
@click.option("--mpicc", metavar="PROGRAM", help="MPI compiler; default: $MPICC, or as installed.")
def command(
    topology_file: str,
    launcher: str | None,
    collectives: str | None,
    communicators: str | None,
    sizes: tuple[int, ...],
    timing: str,
    computation: int,
    budget: float,
    output: Path | None,
    resume: bool,
    log_file: Path | None,
    mpicc: str | None,
) -> None:
    """Tune the collectives of a cluster and generate a library for it."""
    if resume and log_file:
        raise click.UsageError("--resume and --from-log exclude each other")
    topology = load_topology(topology_file)
    folder = output or Path("generated") / topology.name
    run = _Run(topology, load_catalogue(), folder, Console(stderr=True, highlight=False))
    options = Options(
        _collectives(run.catalogue, collectives),
        sizes,
        Timing(timing, computation if timing == "computation" else 0),
        budget,
        _communicators(topology, communicators),
    )
    if log_file:
        _from_log(run, options, log_file)
    else:
        _measure(run, options, launcher, Toolchain.find(mpicc), resume)


def _collectives(catalogue: Catalogue, names: str | None) -> tuple[str, ...]:
    chosen = catalogue.collectives if names is None else tuple(sorted(set(names.split(","))))
    unknown = set(chosen) - set(catalogue.collectives)
    if unknown:
        raise click.UsageError(
            f"unknown collective {', '.join(sorted(unknown))}; "
            f"choose from {', '.join(catalogue.collectives)}"
        )
    return chosen


def _communicators(topology: Topology, names: str | None) -> tuple[str, ...]:
    """Return the communicators to tune for; an unknown name is an InputError (status 2)."""
    chosen = default_names(topology) if names is None else tuple(names.split(","))
    return tuple(one.name for one in find_communicators(topology, chosen))


def _from_log(run: _Run, wished: Options, path: Path) -> None:
    """Decide and generate from a log alone, and put a copy of it into the folder."""
    log = read_tuning(path, run.topology, run.catalogue, wished, resume=False)
    run = replace(run, catalogue=log.catalogue)
    tuned = _tune(run, log.options, LogSource(log.records), lambda: log.records, None)
    if path.resolve() != (run.output / LOG).resolve():
        write_file(run.output / LOG, path.read_text(encoding="utf-8"))
    _write(run, tuned, log.records)


def _measure(
    run: _Run, options: Options, launcher_name: str | None, toolchain: Toolchain, resume: bool
) -> None:
    """Measure what the search asks for and a log to resume does not hold; generate."""
    path = run.output / LOG
    resume = resume and path.exists()
    known: list[dict[str, Any]] = []
    restated: tuple[dict[str, Any], ...] = ()
    if resume:
        tuning = read_tuning(path, run.topology, run.catalogue, options, resume)
        options, known, restated = tuning.options, tuning.records, tuning.restated
    launcher, why = choose_launcher(run.topology, launcher_name)
    run.console.print(why)
    log = LogWriter(path, None if resume else new_header(run.topology, run.catalogue, options))
    if restated:
        log.write(*restated)
    live = _live(run, options, launcher, toolchain, log, environments(known))
    try:
        tuned = _tune(run, options, LogSource(known, live), lambda: [*known, *log.written], live)
    except MeasurementError as error:
        if not log.begun:
            raise
        raise MeasurementError(
            f"{error}\nwhat was measured is in {path}; go on with --resume"
        ) from error
    finally:
        live.close()
        log.close()
    _write(run, tuned, [*known, *log.written])


def _live(
    run: _Run,
    options: Options,
    launcher: Launcher,
    toolchain: Toolchain,
    log: LogWriter,
    before: Sequence[Environment],
) -> LiveSource:
    """Return the source that measures the cluster, with all routines to tune in one program.

    The lab's network is slow, and has no effect on whether a routine is right: the same program
    checks the routines without it.
    """
    renderer = Renderer(COMMAND, run.topology.name, run.topology.hash, run.catalogue.hash)
    build = session_build(run.topology, run.catalogue, options.collectives)
    files = measuring_sources(build, renderer)
    folder = run.output / "build" / "session"
    starter = SessionStarter(folder, files, toolchain, launcher, run.topology, log, before)
    return LiveSource(
        starter,
        log,
        lambda name, size: patience(run.topology, name, size),
        {one.name: one.ranks for one in find_communicators(run.topology, options.communicators)},
        starter.start_here if launcher.emulates else None,
    )


def _tune(
    run: _Run,
    options: Options,
    source: Source,
    records: Callable[[], Sequence[Mapping[str, Any]]],
    live: LiveSource | None,
) -> Tuned:
    def representative() -> bool:
        seen = environments(records())
        return bool(seen) and all(environment.representative for environment in seen)

    with _progress(run.console, steps(options), live is not None) as progress:
        return tune(run.topology, run.catalogue, options, source, representative, progress)


@contextmanager
def _progress(console: Console, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar; each call is one step, further ones (crossovers) lengthen it."""
    bar = Progress(
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}"), console=console, disable=not shown,
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=total)
        begun = 0

        def step(what: str) -> None:
            nonlocal begun
            begun += 1
            bar.update(task, completed=begun - 1, total=max(total, begun), description=what)

        yield step
        bar.update(task, completed=max(total, begun), description="done")


def _write(run: _Run, tuned: Tuned, records: Sequence[Mapping[str, Any]]) -> None:
    """Write library and report, and say what was chosen."""
    seen = environments(records)
    report = render_report(run.topology, tuned, seen)
    write_library(run.output, run.topology, run.catalogue, tuned.decision, {"report.html": report})
    for check in tuned.wrong:
        run.console.print(
            f"wrong result, never chosen: {check.collective} {check.candidate.spec} "
            f"on {check.communicator}: {check.first_wrong}"
        )
    for failure in (failure for outcome in tuned.outcomes for failure in outcome.failures):
        run.console.print(
            f"failed when timed, never chosen: {failure.collective} {failure.candidate.spec} "
            f"on {failure.communicator} at {failure.size} bytes: {failure.why}"
        )
    if not tuned.decision.representative:
        run.console.print("not representative: this machine was measured, not the cluster")
    click.echo(f"{run.output}: make && make install PREFIX=…; see {run.output / 'report.html'}")
