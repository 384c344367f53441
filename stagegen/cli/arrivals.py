"""``stagegen arrivals``: how the processes of a program arrive at its collectives."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from stagegen.cli._options import print_json
from stagegen.cli._output import json_options
from stagegen.cli.record import toolchain_of
from stagegen.errors import LaunchError, what_is_wrong
from stagegen.generate.write import write_file
from stagegen.measure.launch.cache import cache_folder
from stagegen.recording import read
from stagegen.recording.arrivals import CLASSES, Arrivals, SiteArrivals, arrivals_of
from stagegen.recording.build import EXCHANGE, built
from stagegen.recording.messages import SIZES, MessageTimes, message_times, read_message_times
from stagegen.report.arrivals_page import render_arrivals
from stagegen.report.units import format_bytes, format_seconds

#: Rows of the text that are about sites.
_ROWS = 20


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--messages",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Times of messages on this cluster; without them there are no imbalance factors.",
)
@click.option(
    "--calibrate",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Measure times of messages with the command behind `--`, and write them to FILE.",
)
@click.option("--mpicc", metavar="PROGRAM", help="MPI compiler; default: the one beside mpiexec.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page."
)
@json_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="RECORDING")
def command(
    messages: Path | None,
    calibrate: Path | None,
    mpicc: str | None,
    html: Path | None,
    as_json: bool,
    output_format: str,
    words: tuple[str, ...],
) -> None:
    """Report the process arrival patterns of a RECORDING, by collective and call site.

    `stagegen arrivals --calibrate FILE -- mpiexec -n 2 -hosts A,B` measures times of messages.
    """
    if calibrate is not None:
        if messages or html or as_json:
            raise click.UsageError(
                "--calibrate only measures: leave out --messages, --html, --json"
            )
        _calibrate(calibrate, words, mpicc)
        return
    if len(words) != 1:
        raise click.UsageError("name one recording")
    times = None if messages is None else read_message_times(messages)
    arrivals = arrivals_of(read(Path(words[0])), times)
    if html is not None:
        write_file(html, render_arrivals(arrivals, times, Path(words[0]).name))
    if as_json or output_format == "json":
        print_json(arrivals.to_json())
    else:
        _print_text(arrivals, times)


def _calibrate(file: Path, words: Sequence[str], mpicc: str | None) -> None:
    """Measure times of messages between two ranks, and write them.

    Raises:
        LaunchError: the job failed, or printed something else.
    """
    if not words:
        raise click.UsageError("write the command behind `--`, such as -- mpiexec -n 2 -hosts A,B")
    program = built(EXCHANGE, cache_folder(), toolchain_of(words, mpicc))
    command = [*words, str(program), *map(str, SIZES)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        form = json.loads(done.stdout) if done.returncode == 0 else None
        times = message_times(form["messages"], int(form["hosts"])) if form else None
    except OSError as error:
        raise LaunchError(f"cannot start {words[0]}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchError(
            f"{words[0]} printed something else than times: {what_is_wrong(error)}"
        ) from error
    if times is None:
        raise LaunchError(
            f"{words[0]} ended with status {done.returncode}: see what it says above; run it "
            "alone with a program that prints the host's name"
        )
    write_file(file, json.dumps(times.to_json()) + "\n")
    for size, seconds in zip(times.sizes, times.seconds, strict=True):
        click.echo(f"{format_bytes(size):>10}  {format_seconds(seconds)}")
    if times.hosts == 1:
        click.echo("both ranks were on one host: messages between hosts take longer", err=True)


def _print_text(arrivals: Arrivals, times: MessageTimes | None) -> None:
    for line in _facts(arrivals, times):
        click.echo(line)
    width = 150 if not Console().is_terminal else None
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    console.print(_sites(arrivals.sites[:_ROWS]))
    if len(arrivals.sites) > _ROWS:
        click.echo(f"… and {len(arrivals.sites) - _ROWS} more: see --json")
    if times is not None:
        console.print(_distribution(arrivals))
    for line in _phases(arrivals.sites[:_ROWS]):
        click.echo(line)


def _facts(arrivals: Arrivals, times: MessageTimes | None) -> Iterator[str]:
    clocks, recording = arrivals.aligned.clocks, arrivals.recording
    whole = "" if arrivals.seconds is None else f" of {format_seconds(arrivals.seconds)}"
    yield f"{recording.size} ranks; {format_seconds(arrivals.communication)}{whole} in collectives"
    proven = format_seconds(clocks.proven) if math.isfinite(clocks.proven) else "not bounded"
    yield f"clock error between two ranks: {format_seconds(clocks.error)} (proven: {proven})"
    if recording.missing:
        yield f"nothing is known of rank {', '.join(map(str, recording.missing))}"
    if recording.dropped or arrivals.aligned.unmatched:
        yield f"{recording.dropped} calls left out; {arrivals.aligned.unmatched} lack a rank"
    if times is None:
        yield "no imbalance factors: measure times of messages with --calibrate; give --messages"
    else:
        average, worst = arrivals.factors(worst=False), arrivals.factors(worst=True)
        if average is not None and worst is not None:
            yield f"imbalance factor of all calls: average {average:.3g}, worst {worst:.3g}"


def _sites(sites: Sequence[SiteArrivals]) -> Table:
    table = Table(box=None, header_style="bold")
    for title in ("collective", "site"):
        table.add_column(title, overflow="fold")
    for title in ("size", "ranks", "calls", "average", "worst", "greatest", "factor", "worst f.",
                  "elapsed", "waiting", "delay"):  # fmt: skip
        table.add_column(title, justify="right")
    for site in sites:
        form = site.to_json()
        table.add_row(
            site.calls.collective if site.calls.mode == "blocking" else f"i{site.calls.collective}",
            site.calls.site,
            format_bytes(site.calls.size),
            str(len(site.calls.ranks)),
            str(form["calls"]),
            *(_seconds(form[f"{name}_imbalance_s"]) for name in ("average", "worst", "greatest")),
            *(_number(form[name]) for name in ("average_factor", "worst_factor")),
            *(_seconds(form[n]) for n in ("elapsed_s", "waiting_s", "synchronisation_delay_s")),
        )
    return table


def _distribution(arrivals: Arrivals) -> Table:
    """Return the classes of worst-case imbalance factors (Faraj 2006, Fig. 4.12)."""
    table = Table(box=None, header_style="bold", title="calls by worst-case imbalance factor")
    table.add_column("messages")
    before = 0.0
    for end in CLASSES:
        title = f"≥ {before:g}" if math.isinf(end) else f"{before:g}–{end:g}"
        table.add_column(title, justify="right")
        before = end
    for title, small in (("small (≤ 1000 B)", True), ("medium and large", False)):
        shares = arrivals.distribution(small)
        cells = ["–"] * len(CLASSES) if shares is None else [f"{one:.0%}" for one in shares]
        table.add_row(title, *cells)
    return table


def _phases(sites: Sequence[SiteArrivals]) -> Iterator[str]:
    for site in sites:
        if len(site.phases) > 1:
            spans = ", ".join(
                f"{one.first}–{one.last}: {format_seconds(one.median)}" for one in site.phases
            )
            name = f"{site.calls.collective} {site.calls.site} {format_bytes(site.calls.size)}"
            yield f"phases of {name} (calls: median of the worst imbalance): {spans}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else format_seconds(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
