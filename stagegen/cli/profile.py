"""``stagegen profile``: which collectives take a program's time, and what tuning can gain."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from stagegen.cli._checks import require_with
from stagegen.cli._options import print_json
from stagegen.cli._output import json_options
from stagegen.errors import InputError
from stagegen.generate.write import write_file
from stagegen.recording import read
from stagegen.recording.profile import Profile, profile_of
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import load_topology
from stagegen.tune.recorded_program import trace_form

_ROWS = 30


@click.command()
@click.argument("recording", type=click.Path(path_type=Path))
@click.option(
    "--histogram",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a histogram that `stagegen tune --for` reads; needs --topology.",
)
@click.option("--topology", "topology_file", metavar="FILE", help="The cluster's YAML file.")
@json_options
def command(
    recording: Path,
    histogram: Path | None,
    topology_file: str | None,
    as_json: bool,
    output_format: str,
) -> None:
    """Report which collectives, sizes and call sites take the time of a RECORDING.

    The program causes the waiting for the last rank to arrive; tuning can only shorten the rest,
    the operation.
    """
    require_with("topology_file", "--histogram", histogram)
    profile = profile_of(read(recording))
    if histogram is not None:
        if topology_file is None:
            raise InputError("--histogram needs --topology: a histogram is of one cluster")
        form = trace_form(profile, load_topology(topology_file))
        write_file(histogram, json.dumps(form, indent=1) + "\n")
    if as_json or output_format == "json":
        print_json(profile.to_json())
    else:
        _print_text(profile)


def _print_text(profile: Profile) -> None:
    runtime = profile.seconds
    parts = [
        ("in collectives", profile.total("elapsed")),
        ("waiting for the last rank: only the program can change it", profile.total("waiting")),
        ("in operations: what tuning can gain is a part of it", profile.total("operation")),
    ]
    if runtime is not None:
        parts.insert(0, ("the program, from MPI_Init to MPI_Finalize", runtime))
    for text, seconds in parts:
        share = "" if not runtime else f"{seconds / runtime:>7.1%}"
        click.echo(f"{format_seconds(seconds):>9} {share}  {text}")
    click.echo(f"{format_seconds(profile.clock_error):>9}  clock error between two ranks")
    table = Table(box=None, header_style="bold")
    for title in ("collective", "site"):
        table.add_column(title, overflow="fold")
    for title in ("size", "ranks", "hosts", "calls", "time", "waiting", "operation", "share"):
        table.add_column(title, justify="right")
    every = profile.total("elapsed") or 1.0
    for row in profile.rows[:_ROWS]:
        table.add_row(
            row.collective,
            row.site,
            format_bytes(row.size),
            str(row.ranks),
            str(row.hosts),
            str(row.calls),
            format_seconds(row.elapsed),
            format_seconds(row.waiting),
            format_seconds(row.operation),
            f"{row.elapsed * row.ranks / profile.size / every:.1%}",
        )
    width = 140 if not Console().is_terminal else None
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)
    if len(profile.rows) > _ROWS:
        click.echo(f"… and {len(profile.rows) - _ROWS} more: see --json")
