"""``stagegen tune``: from a topology file to a folder in which ``make install`` works.

Runs the stages in order: topology, schedules and routines, measuring, decision, library,
report.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.cli._alone import alone_in
from stagegen.cli._endings import Stopped, StoppedError, endings
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import (
    catalogue_selecting,
    collectives_of,
    launcher_option,
    selection_options,
    topology_option,
)
from stagegen.cli._parts import added_to
from stagegen.cli._program import options_for, program_option
from stagegen.cli._progress import Display, Watch, choose_display, progress_options, shown
from stagegen.cli._protocol import protocol_options
from stagegen.cli._sbatch import job_script
from stagegen.cli._sizes import parse_sizes
from stagegen.cli._timing import mechanism_to_resume, timing_of, timing_options
from stagegen.cli._tune_log import LOG, new_header, read_tuning
from stagegen.errors import InputError, MeasurementError, StagegenError
from stagegen.generate import Renderer, Toolchain, measuring_sources, session_build
from stagegen.generate.timings import Mechanism, require_sound
from stagegen.generate.write import write_file
from stagegen.library import write_library
from stagegen.library.folder import COMMAND
from stagegen.measure.comparable import Admission, mixed_facts
from stagegen.measure.iterations import Iterations
from stagegen.measure.launch.base import Launcher
from stagegen.measure.live import SessionStarter, environments
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter, keep
from stagegen.measure.records import Measurement
from stagegen.measure.source import LogSource, Source
from stagegen.measure.watchdog import PATIENCE
from stagegen.report import render_report
from stagegen.topology import Topology, load_topology
from stagegen.tune import bounds
from stagegen.tune.communicators import default_names, find_communicators
from stagegen.tune.forecast import Forecast, races
from stagegen.tune.protocol import Protocol
from stagegen.tune.scope import Options
from stagegen.tune.tuner import Tuned, tune

#: The events of the runs that wrote into a folder.
EVENTS = "tune.log"

_EVENTS = logging.getLogger(__name__)

#: Seconds of measured time for a size after which no repetitions are added.
BUDGET = 20.0

#: A day: more is taken for a mistake, and JSON cannot hold infinity.
BUDGET_MOST = 86_400.0


@dataclass(frozen=True)
class _Run:
    """One call of the command: what it works on, and whether it mixes environments."""

    topology: Topology
    catalogue: Catalogue
    output: Path
    mix: bool

    def bound(self, collective: str, size: int) -> float:
        """Return the seconds that a call's time is compared with: its lower bound, or a higher."""
        return bounds.patience(self.topology, self.catalogue.collective(collective), size)


@click.command()
@topology_option
@launcher_option
@click.option(
    "--collectives",
    metavar="A,B",
    help="Collectives to tune; default: all, or with --algorithms those that have one of them.",
)
@selection_options
@click.option(
    "--communicators",
    metavar="A,B",
    help="Communicators to tune for: whole, groups of the file, shapes such as 4x2 (4 hosts with 2 "
    "ranks on each), per-switch, per-host, half, or numbers of ranks; default: whole, all groups, "
    "and jobs on 2, ⅛, ¼ and ½ of the hosts.",
)
@click.option(
    "--sizes",
    callback=parse_sizes,
    default="1:256KiB",
    show_default=True,
    help="Message sizes: FROM:TO (1, 64, 512, 1Ki, 2Ki, …) or a list A,B,….",
)
@program_option
@timing_options
@protocol_options
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
@click.option(
    "--mix-environments",
    "mix",
    is_flag=True,
    help="With --resume or --from-log: put measurements of different environments together.",
)
@click.option(
    "--sbatch",
    "script",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Measure nothing: write the script of a Slurm job that runs this command (- is stdout).",
)
@click.option(
    "--time-limit",
    default="12:00:00",
    show_default=True,
    help="Time limit of the --sbatch job: minutes, HH:MM:SS or D-HH:MM:SS.",
)
@click.option("--mpicc", metavar="PROGRAM", help="MPI compiler; default: $MPICC, or as installed.")
@click.option(
    "--patience",
    type=click.FloatRange(min=1, max=BUDGET_MOST),
    default=PATIENCE,
    show_default=True,
    help="Seconds, beyond a hundred times its lower bound, after which what does not end counts as "
    "hanging; less where measurements have shown how long calls take.",
)
@progress_options
def command(
    topology_file: str,
    launcher: str | None,
    collectives: str | None,
    algorithms: str | None,
    without_algorithms: str | None,
    without_topology: bool,
    communicators: str | None,
    sizes: tuple[int, ...],
    traces: tuple[Path, ...],
    timing: Mechanism,
    computation: float,
    metric: str,
    iterations: Iterations,
    launches: int,
    width: float,
    gain: float,
    seed: int,
    budget: float,
    output: Path | None,
    resume: bool,
    log_file: Path | None,
    mix: bool,
    script: Path | None,
    time_limit: str,
    mpicc: str | None,
    patience: float,
    quiet: bool,
    json_progress: int | None,
) -> None:
    """Tune the collectives of a cluster and generate a library for it."""
    if resume and log_file:
        raise click.UsageError("--resume and --from-log exclude each other")
    topology = load_topology(topology_file)
    folder = output or Path("generated") / topology.name
    catalogue = catalogue_selecting(
        load_catalogue(added=added_to(topology_file, topology)),
        algorithms,
        without_algorithms,
        without_topology,
    )
    run = _Run(topology, catalogue, folder, mix)
    options = Options(
        collectives_of(run.catalogue, collectives),
        sizes,
        timing_of(timing, computation, metric, iterations),
        budget,
        _communicators(topology, communicators),
        catalogue.selection,
        Protocol(launches, width, gain, seed),
    )
    options = options_for(traces, topology, options)
    if script:
        _write_script(script, job_script(topology, sys.argv[1:], time_limit))
        return
    display = choose_display(quiet, json_progress, lasting=log_file is None)
    if log_file:
        _from_log(run, options, log_file, display)
    else:
        found = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
        _measure(run, options, *found, timing, resume, patience, display)
    click.echo(f"{folder}: make && make install PREFIX=…; see {folder / 'report.html'}")


def _write_script(path: Path, text: str) -> None:
    """Write a job's script to a file, or to standard output where the path is ``-``."""
    if str(path) == "-":
        click.echo(text, nl=False)
    else:
        write_file(path, text)
        click.echo(f"{path}: sbatch {path}")


def _communicators(topology: Topology, names: str | None) -> tuple[str, ...]:
    """Return the communicators to tune for; an unknown name is an InputError (status 2)."""
    chosen = default_names(topology) if names is None else tuple(names.split(","))
    return tuple(one.name for one in find_communicators(topology, chosen))


def _from_log(run: _Run, wished: Options, path: Path, display: Display) -> None:
    """Decide and generate from a log alone, and put a copy of it into the folder."""
    log = read_tuning(path, run.topology, run.catalogue, wished, resume=False)
    run = replace(run, catalogue=log.catalogue)
    allowed = _admission(log.records, run.mix).admit()
    with shown(display, None):
        tuned = _tune(run, log.options, LogSource(log.records), lambda: log.records)
        with alone_in(run.output):
            if path.resolve() != (run.output / LOG).resolve():
                _copy(path, run.output / LOG)
            if allowed:
                with closing(LogWriter(run.output / LOG)) as copy:
                    copy.write(*allowed)
            _write(run, tuned, log.records)


def _copy(log: Path, to: Path) -> None:
    """Copy a log, and keep another one that is there."""
    text = log.read_text(encoding="utf-8")
    if to.exists() and to.read_text(encoding="utf-8") != text:
        keep(to)
    write_file(to, text)


def _admission(records: Sequence[Mapping[str, Any]], mix: bool) -> Admission:
    """Return what decides whether the sessions of a log, and further ones, may be put together."""
    return Admission.to(records, environments(records), mix=mix)


def _measure(
    run: _Run,
    options: Options,
    launcher: Launcher,
    toolchain: Toolchain,
    why: str,
    mechanism: Mechanism,
    resume: bool,
    patience: float,
    display: Display,
) -> None:
    """Measure what the search asks for and a log to resume does not hold; generate."""
    path = run.output / LOG
    with endings() as ends, alone_in(run.output):
        known: list[dict[str, Any]] = []
        restated: tuple[dict[str, Any], ...] = ()
        resume = resume and path.exists()
        if resume:
            tuning = read_tuning(path, run.topology, run.catalogue, options, resume)
            options, known, restated = tuning.options, tuning.records, tuning.restated
            run = replace(run, catalogue=tuning.catalogue)
            mechanism = mechanism_to_resume(mechanism, options.timing, path)
        require_sound(mechanism, toolchain)
        admission = _admission(known, run.mix)
        restated = (*restated, *admission.admit())
        log = LogWriter(path, None if resume else new_header(run.topology, run.catalogue, options))
        live = _live(run, options, launcher, toolchain, mechanism, log, admission, patience)
        with shown(display, run.output / EVENTS), _resumable(log, path):
            _EVENTS.info("%s", why)
            to_come = races(run.topology, run.catalogue, options, options.protocol.launches)
            watch = Watch(display, Forecast(to_come, run.bound))
            try:
                if restated:
                    log.write(*restated)
                source = watch.over(LogSource(known, watch.timed(live)))
                tuned = _tune(run, options, source, lambda: [*known, *log.written], watch.step)
            finally:
                live.close()
                log.close()
            ends.finish()
            _write(run, tuned, [*known, *log.written])


@contextmanager
def _resumable(log: LogWriter, path: Path) -> Iterator[None]:
    """Say in the error, or the signal, that ends the run how to go on, if there is a log of it.

    Raises:
        MeasurementError, StoppedError: with that advice.
    """
    advice = f"what was measured is in {path}; go on with --resume"
    try:
        yield
    except InputError:
        raise
    except Stopped as stopped:
        if not log.begun:
            raise
        raise StoppedError(stopped, f"ended by {stopped}: {advice}") from None
    except (StagegenError, OSError) as error:
        if not log.begun:
            raise
        raise MeasurementError(f"{error}\n{advice}") from error


def _live(
    run: _Run,
    options: Options,
    launcher: Launcher,
    toolchain: Toolchain,
    mechanism: Mechanism,
    log: LogWriter,
    admission: Admission,
    patience: float,
) -> LiveSource:
    """Return the source that measures the cluster, with all routines to tune in one program.

    The lab's network is slow, and has no effect on whether a routine is right: the same program
    checks the routines without it.
    """
    hashes = (run.topology.hash, run.catalogue.hash)
    renderer = Renderer(COMMAND, run.topology.name, *hashes, run.catalogue.templates)
    build = session_build(run.topology, run.catalogue, options.collectives)
    files = measuring_sources(build, renderer, (mechanism,))
    folder = run.output / "build" / "session"
    computes = options.timing.computation_ms > 0
    starter = SessionStarter(
        folder, files, toolchain, launcher, run.topology, log, admission, computes=computes
    )
    return LiveSource(
        starter,
        log,
        run.bound,
        {one.name: one.ranks for one in find_communicators(run.topology, options.communicators)},
        starter.start_here if launcher.emulates else None,
        patience,
    )


def _tune(
    run: _Run,
    options: Options,
    source: Source,
    records: Callable[[], Sequence[Mapping[str, Any]]],
    progress: Callable[[str], None] = _EVENTS.debug,
) -> Tuned:
    def representative() -> bool:
        seen = environments(records())
        return bool(seen) and all(environment.representative for environment in seen)

    tuned = tune(run.topology, run.catalogue, options, source, representative, progress)
    mixed = mixed_facts(environments(records()))
    return replace(tuned, decision=replace(tuned.decision, mixed=mixed))


def _write(run: _Run, tuned: Tuned, records: Sequence[Mapping[str, Any]]) -> None:
    """Write library and report, and say what was chosen."""
    seen = environments(records)
    measured = (Measurement.from_json(one) for one in records if one["kind"] == "measurement")
    report = render_report(run.topology, run.catalogue, tuned, seen, measured)
    write_library(run.output, run.topology, run.catalogue, tuned.decision, {"report.html": report})
    for check in tuned.wrong:
        _EVENTS.warning(
            "wrong result, never chosen: %s %s on %s: %s",
            *(check.collective, check.candidate.spec, check.communicator, check.first_wrong),
        )
    for failure in (failure for outcome in tuned.outcomes for failure in outcome.failures):
        _EVENTS.warning(
            "failed when timed, never chosen: %s %s on %s at %d bytes: %s",
            *(failure.collective, failure.candidate.spec, failure.communicator),
            *(failure.size, failure.why),
        )
    if not tuned.decision.representative:
        _EVENTS.warning("not representative: this machine was measured, not the cluster")
    if tuned.decision.mixed:
        _EVENTS.warning("environments are mixed: %s differ", ", ".join(tuned.decision.mixed))
