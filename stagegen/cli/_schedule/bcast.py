"""``stagegen schedule bcast``."""

from __future__ import annotations

import click

from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.cli._schedule.trees import tree_options, tree_text
from stagegen.schedule import broadcast_tree
from stagegen.topology import Topology


@click.command("bcast")
@tree_options
@schedule_options
def command(
    topology: Topology, root: int, tree: str, arity: int | None, output_format: str
) -> None:
    """Broadcast along a tree; shows where its messages share network edges."""
    schedule = broadcast_tree(topology, root, tree, arity)
    print_schedule(topology, schedule, output_format, tree_text(schedule))
