"""``stagegen tune``: from a topology file to a folder in which ``make install`` works.

Runs the stages in order: topology, schedules and routines, measuring, decision, library,
report.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from stagegen.catalogue import load_catalogue
from stagegen.cli._arrivals import fitting
from stagegen.cli._budget import AUTO, MOST, PER_SIZE, Budget, parse_budget
from stagegen.cli._checks import FiniteRange, require_with
from stagegen.cli._launch import launcher_and_toolchain
from stagegen.cli._options import (
    catalogue_selecting,
    collectives_of,
    launcher_option,
    mpicc_option,
    selection_options,
    topology_option,
    tree_option,
)
from stagegen.cli._parts import added_to
from stagegen.cli._program import options_for, program_option
from stagegen.cli._progress import choose_display, ended, progress_options
from stagegen.cli._protocol import protocol_options
from stagegen.cli._sbatch import job_script
from stagegen.cli._sizes import sizes_option
from stagegen.cli._timing import Chosen, timing_of, timing_options
from stagegen.cli._tune_log import LOG, scales_of
from stagegen.cli._tune_patterns import (
    ALONE,
    TUNED,
    classes_option,
    communicators_asked,
    patterns_of,
    patterns_option,
    roots_of,
    scales_option,
)
from stagegen.cli._tune_run import Run, from_log, measure
from stagegen.generate.write import write_file
from stagegen.measure.iterations import Iterations
from stagegen.measure.launch.base import Launcher, stays_here
from stagegen.measure.watchdog import PATIENCE
from stagegen.topology import Topology, load_topology
from stagegen.tune.allowance import allowance
from stagegen.tune.communicators import default_names, find_communicators, name_of
from stagegen.tune.protocol import Protocol
from stagegen.tune.scope import Options
from stagegen.tune.together import together


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
    "and jobs on 1, 2, ⅛, ¼ and ½ of the hosts.",
)
@sizes_option(default="1:256KiB")
@tree_option
@program_option
@patterns_option
@classes_option
@scales_option
@timing_options
@protocol_options
@click.option(
    "--budget",
    callback=parse_budget,
    default=AUTO,
    show_default=True,
    metavar="auto|DURATION|S",
    help="A duration with a unit, such as 90s, 10m or 1h30m: the time of the whole tuning, spent "
    f"where it gains most. {AUTO}: a duration that fits the sizes and the rates of links, such as "
    "28 minutes for all collectives on 16 hosts at 20 Mbit/s; no limit if groups are timed at "
    "once. A number: no limit for the whole tuning; the seconds of measured time for a size, after "
    f"which no repetitions are added (otherwise {PER_SIZE:g}, or an equal share of the duration).",
)
@click.option(
    "--adaptive",
    is_flag=True,
    help="Generate a library whose calls can measure and adapt, where LIBCOLL_ADAPTIVE says so.",
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
@mpicc_option
@click.option(
    "--at-once/--in-turn",
    "at_once",
    default=None,
    help="Time groups that share no link at the same time, or one after the other; default: at "
    "once, unless the launcher emulates the cluster or has all ranks on this machine. Within a "
    "budget for the whole tuning, and where ranks come late, they are timed one after the other.",
)
@click.option(
    "--patience",
    type=FiniteRange(min=1, max=MOST),
    default=PATIENCE,
    show_default=True,
    help="A command counts as hung when it takes this many seconds longer than a hundred times its "
    "lower bound. At the first attempt, the limit is a quarter of that. It is lower where earlier "
    "commands have shown how long calls take.",
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
    trees: tuple[Path, ...],
    traces: tuple[Path, ...],
    pattern_file: Path | None,
    has_classes: bool,
    scales: tuple[float, ...],
    timing: Chosen,
    computation: float,
    metric: str | None,
    iterations: Iterations,
    launches: int,
    width: float,
    gain: float,
    seed: int,
    budget: Budget,
    adaptive: bool,
    output: Path | None,
    resume: bool,
    log_file: Path | None,
    mix: bool,
    script: Path | None,
    time_limit: str,
    mpicc: str | None,
    at_once: bool | None,
    patience: float,
    quiet: bool,
    json_progress: int | None,
) -> None:
    """Tune the collectives of a cluster and generate a library for it."""
    display = choose_display(quiet, json_progress, lasting=log_file is None)
    with ended(display):
        if resume and log_file:
            raise click.UsageError("--resume and --from-log exclude each other")
        if at_once and log_file:
            raise click.UsageError("--at-once and --from-log exclude each other")
        if script and log_file:
            raise click.UsageError("--sbatch and --from-log exclude each other")
        require_with("time_limit", "--sbatch", script)
        require_with("scales", "--patterns", pattern_file)
        say = partial(display.say, "info")
        topology = load_topology(topology_file)
        folder = output or Path("generated") / topology.name
        scales = scales_of(log_file or (folder / LOG if resume else None), scales)
        patterns = patterns_of(pattern_file, topology, has_classes=has_classes, say=say)
        added = (
            *added_to(topology_file, topology, trees),
            *roots_of(pattern_file, patterns, topology, scales, say),
        )
        catalogue = catalogue_selecting(
            load_catalogue(added=added),
            algorithms,
            without_algorithms,
            without_topology,
        )
        run = Run(topology, catalogue, folder, mix, adaptive)
        if script and not resume and (folder / LOG).exists():
            raise click.UsageError(
                f"{folder} has the log of an earlier run, and the job would go on with it; give "
                "--resume if it is to, or another --output"
            )
        asked, alone = communicators_asked(communicators, patterns)
        chosen = () if alone else _communicators(topology, asked, timing)
        if alone and collectives:
            raise click.UsageError(f"--communicators {ALONE} and --collectives exclude each other")
        if alone:
            collectives = ",".join(sorted({one.collective for one in patterns}))
        named = collectives_of(run.catalogue, collectives)
        if not named:
            raise click.UsageError("only native routines are left, so there is nothing to tune")
        options = Options(
            named,
            sizes,
            timing_of(timing, computation, metric, iterations, seed),
            budget.per_size,
            (*chosen, *map(name_of, patterns)),
            catalogue.selection,
            Protocol(launches, width, gain, seed),
            total=budget.total,
            patterns=patterns,
            scales=scales,
        )
        if has_classes and not set(TUNED) & set(options.collectives):
            raise click.UsageError(
                "--classes tunes alltoallv and allgatherv; --collectives has neither"
            )
        options = options_for(traces, topology, run.catalogue, options, say)
        _refuse_at_once(at_once, options)
        if script:
            _write_script(script, job_script(topology, sys.argv[1:], time_limit))
            display.end(0, "")
            return
        if log_file:
            from_log(run, options, log_file, display)
        else:
            found = launcher_and_toolchain(topology, topology_file, launcher, mpicc)
            is_at_once = _at_once(at_once, options, found[0])
            if budget.is_auto and not (is_at_once and _some_apart(topology, options)):
                options = replace(options, total=allowance(topology, run.catalogue, options))
            measure(
                *(run, options, *found, timing, resume, patience, display),
                at_once=is_at_once and options.total is None,
            )
        click.echo(f"{folder}: make && make install PREFIX=…; see {folder / 'report.html'}")


def _at_once(asked: bool | None, options: Options, launcher: Launcher) -> bool:
    """Whether to time communicators at once: if asked to, or if hosts are machines of their own."""
    if asked is not None:
        return asked
    late = options.timing.arrivals is not None
    return not (late or launcher.emulates or stays_here(launcher))


def _refuse_at_once(asked: bool | None, options: Options) -> None:
    """Refuse to time communicators at once where that is not possible.

    Raises:
        click.UsageError: it is asked for.
    """
    late = options.timing.arrivals is not None
    if asked and (late or options.total is not None):
        what = f"--timing {options.timing.mechanism}" if late else "--budget with a unit"
        raise click.UsageError(f"--at-once: with {what}, communicators are timed one by one")


def _some_apart(topology: Topology, options: Options) -> bool:
    """Whether any communicators share no link, so that they can be timed at once."""
    found = find_communicators(topology, options.communicators, options.patterns)
    return any(len(some) > 1 for some in together(topology, found))


def _write_script(path: Path, text: str) -> None:
    """Write a job's script to a file, or to standard output where the path is ``-``."""
    if str(path) == "-":
        click.echo(text, nl=False)
    else:
        write_file(path, text)
        click.echo(f"{path}: sbatch {path}")


def _communicators(topology: Topology, names: str | None, timing: Chosen) -> tuple[str, ...]:
    """Return the communicators to tune for; an unknown name is an InputError (status 2)."""
    chosen = default_names(topology) if names is None else tuple(names.split(","))
    found = tuple(one.name for one in find_communicators(topology, chosen))
    return fitting(timing.arrivals, topology, found, asked=names is not None)
