"""``stagegen adapt``: traces, replays of selection policies, and reports of what was learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from stagegen.adaptive.learned import Learned, Situation, read_learned
from stagegen.adaptive.policies import Settings, policy_names
from stagegen.adaptive.replay import Replayed, replay
from stagegen.adaptive.trace import COURSES, SOURCE_GROUPS, Trace, read_trace, synthetic
from stagegen.adaptive.trace import trace_of_measurements as traced
from stagegen.catalogue import applicable, load_catalogue
from stagegen.catalogue.algorithm import Adaptation, Algorithm
from stagegen.cli import compare
from stagegen.cli._checks import FiniteRange
from stagegen.cli._options import format_option, print_json, to_size
from stagegen.cli._parts import added_to
from stagegen.cli._tune_log import LOG
from stagegen.errors import InputError
from stagegen.generate.write import write_file
from stagegen.measure.log import read_log
from stagegen.measure.records import Measurement
from stagegen.report.adaptive_page import render_learned
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import WHOLE, load_topology

_FILE = click.Path(dir_okay=False, path_type=Path)

#: A meeting of the ranks after a trial of three calls is a reduce of so many bytes, and a broadcast
#: of fewer. An allreduce of them takes about as long, and is timed this often.
_MEETING_BYTES, _MEETINGS = 24 * (3 + 2), 40


@click.group()
def command() -> None:
    """Replay selection policies on traces; report what a program learned."""


@command.command("replay")
@click.argument("trace_file", type=_FILE, metavar="TRACE")
@click.option(
    "--policy",
    "policies",
    default="star",
    show_default=True,
    metavar="NAME,…",
    help=f"star, {', '.join(policy_names())}, or all.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 64),
    default=10,
    show_default=True,
    help="Calls in which a candidate is examined.",
)
@click.option(
    "--epsilon",
    type=FiniteRange(0, 10),
    default=0.1,
    show_default=True,
    help="The share by which a choice may be slower than the second best before it is replaced.",
)
@click.option(
    "--delta",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="The first monitoring period, in multiples of --iterations.",
)
@click.option(
    "--delta-bound",
    type=click.IntRange(1, 64),
    default=64,
    show_default=True,
    help="The longest monitoring period, in multiples of --iterations.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of random choices."
)
@click.option(
    "--margin",
    type=FiniteRange(1),
    default=1.5,
    show_default=True,
    help="Candidates whose known time is above this multiple of the least are left out.",
)
@format_option
def replay_command(
    trace_file: Path,
    policies: str,
    iterations: int,
    epsilon: float,
    delta: int,
    delta_bound: int,
    seed: int,
    margin: float,
    output_format: str,
) -> None:
    """Let policies choose on a TRACE: the C that a library runs, without MPI."""
    if delta > delta_bound:
        raise click.BadParameter(f"{delta} is above --delta-bound", param_hint="--delta")
    trace = read_trace(trace_file)
    settings = Settings(
        iterations=iterations,
        epsilon=epsilon,
        delta=delta,
        delta_bound=delta_bound,
        seed=seed,
        margin=margin,
        meeting_s=trace.meeting_s,
    )
    names = policy_names() if policies == "all" else policies.split(",")
    rooted = _is_rooted(trace.collective)
    played = [replay(trace, name, settings, rooted=rooted) for name in names]
    if output_format == "json":
        print_json({"replays": [one.to_json() for one in played]})
    else:
        _print_replays(played)


def _is_rooted(collective: str) -> bool:
    """Whether a collective has a root; one that the catalogue does not have counts as without."""
    catalogue = load_catalogue()
    return collective in catalogue.collectives and catalogue.collective(collective).rooted


def _print_replays(played: Sequence[Replayed]) -> None:
    console = Console(width=150 if not Console().is_terminal else None, highlight=False)
    table = Table(box=None, header_style="bold")
    for title in ("policy", "in the end"):
        table.add_column(title)
    for title in ("selected after", "loss", "excess", "O_MS^a", "O_MS^c", "O_MA", "meetings"):
        table.add_column(title, justify="right")
    for one in played:
        costs = one.overheads
        table.add_row(
            one.policy,
            one.last,
            "–" if costs.selected_after is None else str(costs.selected_after),
            f"{one.loss:+.2%}",
            *(format_seconds(x) for x in (costs.excess_s, costs.o_ms_a_s, costs.o_ms_c_s)),
            format_seconds(costs.o_ma_s),
            str(len(one.stages)),
        )
    console.print(table)
    for one in played:
        click.echo(f"{one.policy}: the best single one is {one.best}")
        call, before = 0, -1
        for stage in one.stages:
            if stage.candidate != before:
                click.echo(f"  {call:6}  {one.trace.candidates[stage.candidate]}: {stage.why}")
            call, before = call + stage.calls, stage.candidate


@command.command("trace")
@click.option("--synthetic", "course", type=click.Choice(tuple(COURSES)), help="Make up times.")
@click.option("--topology", "topology_file", metavar="FILE", help="Measure on this cluster.")
@click.option(
    "--algorithms", default="", metavar="A,B:x=1,…", help="Algorithms to measure; default: all."
)
@click.option("--launcher", metavar="NAME", help="With --topology: what starts the ranks.")
@click.option("--from-log", "log", type=_FILE, metavar="FILE", help="Take times of a log.")
@click.option("--collective", default="alltoall", show_default=True, help="The collective.")
@click.option(
    "--size", callback=to_size, default="2KiB", show_default=True, help="The message size."
)
@click.option(
    "--communicator", default=WHOLE, show_default=True, help="The communicator in the log."
)
@click.option("--chosen", metavar="ROUTINE", help="What the table chose; default: native.")
@click.option(
    "--calls", type=click.IntRange(1), default=2000, show_default=True, help="Calls of the trace."
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of synthetic times."
)
@click.option("--output", type=_FILE, required=True, metavar="FILE", help="The trace to write.")
def trace_command(
    course: str | None,
    topology_file: str | None,
    algorithms: str,
    launcher: str | None,
    log: Path | None,
    collective: str,
    size: int,
    communicator: str,
    chosen: str | None,
    calls: int,
    seed: int,
    output: Path,
) -> None:
    """Write a trace: what each call takes with each candidate.

    With --topology, all candidates are timed in turn, one call at a time, by `stagegen compare`;
    its program and log are in the folder OUTPUT.session. So is the meeting of the ranks after a
    stage, in OUTPUT.meeting.
    """
    if [course, topology_file, log].count(None) != 2:
        raise click.UsageError("give one of --synthetic, --topology and --from-log")
    if course is not None:
        if collective not in SOURCE_GROUPS:
            raise click.BadParameter(
                f"there are {', '.join(SOURCE_GROUPS)}", param_hint="--collective"
            )
        trace = synthetic(course, calls=calls, seed=seed, collective=collective, size=size)
    else:
        limit = None
        marks: dict[str, Adaptation] = {}
        if topology_file is not None:
            limit = calls
            folder = output.with_name(f"{output.name}.session")
            log = folder / LOG
            competing = _competing(topology_file, collective, size)
            names = algorithms or ",".join(one.name for one in competing)
            _measure(topology_file, launcher, collective, names, size, calls, folder)
            marks = {one.name: one.adaptive for one in competing if one.adaptive is not None}
        assert log is not None
        trace = _of_log(log, collective, size, communicator, chosen, limit)
        trace = trace.with_adaptations(marks)
        if topology_file is not None:
            seconds = _meeting(topology_file, launcher, output.with_name(f"{output.name}.meeting"))
            trace = replace(trace, meeting_s=seconds)
    write_file(output, json.dumps(trace.to_json()) + "\n")
    click.echo(f"{trace.calls} calls of {len(trace.candidates)} candidates")


def _competing(topology_file: str, collective: str, size: int) -> list[Algorithm]:
    """Return the algorithms that compete on a cluster at a size; compositions are left out."""
    topology = load_topology(topology_file)
    catalogue = load_catalogue(added=added_to(topology_file, topology))
    catalogue.collective(collective)
    return [
        one
        for one in applicable(catalogue, topology)
        if one.collective == collective and one.handles(size) and not one.parts
    ]


def _measure(
    topology_file: str,
    launcher: str | None,
    collective: str,
    algorithms: str,
    size: int,
    calls: int,
    folder: Path,
) -> None:
    """Time candidates in turn, one call at a time, with the log in a folder."""
    words = ["--topology", topology_file, "--collective", collective, "--algorithms", algorithms]
    repetitions = calls + -(-calls // 4)  # a fifth of these is for what is known
    words += ["--sizes", str(size), "--repetitions", str(repetitions), "--iterations", "1"]
    metric = "slowest" if _is_rooted(collective) else "mean"  # what policies decide by
    words += ["--metric", metric, "--output", str(folder)]
    words += [] if launcher is None else ["--launcher", launcher]
    compare.command.main(words, standalone_mode=False)


def _meeting(topology_file: str, launcher: str | None, folder: Path) -> float:
    """Return the seconds of a meeting of the ranks, as measured."""
    _measure(topology_file, launcher, "allreduce", "native", _MEETING_BYTES, _MEETINGS, folder)
    records = [one for one in read_log(folder / LOG)[1] if one["kind"] == "measurement"]
    return float(median(t for one in records for times in one["seconds"].values() for t in times))


def _of_log(
    log: Path,
    collective: str,
    size: int,
    communicator: str,
    chosen: str | None,
    limit: int | None,
) -> Trace:
    """Return the trace of the candidates in a log that were timed together, as many as possible.

    Raises:
        InputError: the log cannot be read, or has too few times.
    """
    wanted = (collective, size, communicator)
    try:
        records = read_log(log)[1]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", log) from error
    found = [Measurement.from_json(one) for one in records if one["kind"] == "measurement"]
    kept = [
        m
        for m in found
        if (m.request.collective, m.request.size, m.request.communicator) == wanted
        and m.request.timing.arrivals is None
    ]
    if not kept:
        sizes = {
            m.request.size
            for m in found
            if (m.request.collective, m.request.communicator) == (collective, communicator)
        }
        others = ", ".join(map(format_bytes, sorted(sizes))) or "no size"
        problem = f"has no times of {collective} of {format_bytes(size)} on {communicator}"
        raise InputError(f"{problem}; it has {others}", log)
    most = max(len(m.request.candidates) for m in kept)
    largest = [m for m in kept if len(m.request.candidates) == most]
    return traced(largest, log.name, chosen=chosen, limit=limit)


@command.command("report")
@click.argument("file", type=_FILE)
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page.")
@format_option
def report_command(file: Path, html: Path | None, output_format: str) -> None:
    """Report what was tried and chosen at each call site, when and why.

    FILE is what LIBCOLL_LEARN named.
    """
    learned = read_learned(file)
    if html is not None:
        write_file(html, render_learned(learned))
    if output_format == "json":
        print_json(learned.to_json())
    else:
        _print_learned(learned)


def _print_learned(learned: Learned) -> None:
    click.echo(f"{learned.cluster}: policy {learned.policy}, {len(learned.situations)} situations")
    if learned.left_out:
        click.echo(f"{learned.left_out} more were left out for lack of room")
    for one in learned.situations:
        click.echo(f"{one.title}: {one.calls} calls, in the end {_name(one, one.current)}")
        costs = one.overheads()
        if costs is not None:
            after = "never" if costs.selected_after is None else f"after {costs.selected_after}"
            click.echo(
                f"  selected {after}; O_MS^a {format_seconds(costs.o_ms_a_s)}, "
                f"O_MS^c {format_seconds(costs.o_ms_c_s)}, O_MA {format_seconds(costs.o_ma_s)} "
                "per call"
            )
        for call, candidate, why in one.changes():
            told = f"{_name(one, candidate)}{_times(one, candidate)}"
            click.echo(f"  {call:6}  {told}: {why or 'the first'}")
        if one.left_out:
            click.echo(f"  {one.left_out} stages were left out before the latest ones")


def _times(one: Situation, candidate: int) -> str:
    """Return the mean over ranks, the longest rank and the skew of a candidate's calls."""
    mean, longest = one.means.get(candidate), one.longest.get(candidate)
    skew = one.skew_of(candidate)
    if mean is None or longest is None or skew is None:
        return ""
    told = f"longest rank {format_seconds(longest)}, skew {format_seconds(skew)}"
    return f" ({format_seconds(mean)}, {told})"


def _name(one: Situation, candidate: int) -> str:
    return one.candidates[candidate].spec
