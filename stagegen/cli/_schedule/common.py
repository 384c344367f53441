"""Options and output that the subcommands of ``stagegen schedule`` share."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from stagegen.cli._group import hosts_option, load_group
from stagegen.cli._options import topology_option
from stagegen.cli._output import form_option, output_option, put_out
from stagegen.report.pictures import FORMATS, draw
from stagegen.schedule import PhaseSchedule, Ring, RingPipeline, Tree
from stagegen.schedule.verify import verify
from stagegen.topology import Topology

Schedule = PhaseSchedule | Ring | RingPipeline | Tree
_OUTPUT = "stagegen.output"
"""The key of the file to write to in click's context of the running command."""


def schedule_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--topology`, `--hosts`, `--format`, `--output`.

    The command gets the `topology` that the first two name, and the `output_format`; the file
    is for :func:`print_schedule`.
    """

    @topology_option
    @hosts_option
    @form_option(
        ("text", "json", *FORMATS),
        "Text is for people, JSON for programs; svg and png are pictures.",
    )
    @output_option
    @functools.wraps(command)
    def with_topology(
        topology_file: str, hosts: str | None, output: Path | None, **options: Any
    ) -> None:
        click.get_current_context().meta[_OUTPUT] = output
        command(topology=load_group(topology_file, hosts), **options)

    return with_topology


def print_schedule(
    topology: Topology, schedule: Schedule, output_format: str, text: Iterable[str]
) -> None:
    """Check a schedule, then print it, or write it to the file of `--output`.

    Args:
        topology: the cluster of the schedule.
        schedule: the one to print.
        output_format: the value of `--format`.
        text: the lines for people.

    Raises:
        InputError: the file cannot be written.
        ScheduleError: the schedule lacks a property that it should have.
    """
    proof = verify(topology, schedule)
    if output_format in FORMATS:
        form = draw(topology, schedule, output_format)
    elif output_format == "json":
        form = f"{json.dumps(schedule.to_json(), ensure_ascii=False)}\n".encode()
    else:
        lines = [*text, "", "checked: " + proof.lines()[0], *proof.lines()[1:]]
        form = "".join(f"{line}\n" for line in lines).encode()
    put_out(form, click.get_current_context().meta[_OUTPUT])
