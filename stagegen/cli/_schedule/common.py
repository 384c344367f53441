"""What the subcommands of ``stagegen schedule`` have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import click

from stagegen.cli._options import format_option, print_json, topology_option
from stagegen.schedule import PhaseSchedule, Ring, RingPipeline, Tree
from stagegen.schedule.verify import verify
from stagegen.topology import Topology, expand_hostlist, load_topology, restricted_to


def schedule_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--topology`, `--hosts`, `--format`; the command gets the `topology` that they name."""

    @topology_option
    @click.option(
        "--hosts",
        metavar="LIST",
        help="Only the ranks of these hosts, such as n[0-5,9], numbered from 0 in their order.",
    )
    @format_option
    @functools.wraps(command)
    def with_topology(topology_file: str, hosts: str | None, **options: Any) -> None:
        topology = load_topology(topology_file)
        if hosts is not None:
            topology = restricted_to(topology, _names(hosts))
        command(topology=topology, **options)

    return with_topology


def _names(hosts: str) -> list[str]:
    try:
        return expand_hostlist(hosts)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--hosts") from error


def print_schedule(
    topology: Topology,
    schedule: PhaseSchedule | Ring | RingPipeline | Tree,
    output_format: str,
    text: Iterable[str],
) -> None:
    """Check a schedule, then print it."""
    proof = verify(topology, schedule)
    if output_format == "json":
        print_json(schedule.to_json())
    else:
        click.echo("\n".join([*text, "", "checked: " + proof.lines()[0], *proof.lines()[1:]]))
