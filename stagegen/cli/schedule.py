"""``stagegen schedule``: the schedules for a cluster, proven before they are printed.

One module of the folder ``_schedule`` for each collective.
"""

from __future__ import annotations

import click

from stagegen.cli._schedule import allgather, allreduce, alltoall, alltoallv, bcast, reduce


@click.group()
def command() -> None:
    """Compute the schedule of a collective for a cluster, or for a group of its hosts."""


for module in (alltoall, alltoallv, allgather, allreduce, bcast, reduce):
    command.add_command(module.command)
