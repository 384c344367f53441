"""``stagegen schedule reduce``."""

from __future__ import annotations

import click

from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.cli._schedule.trees import tree_options, tree_text
from stagegen.schedule import reduce_tree
from stagegen.topology import Topology


@click.command("reduce")
@tree_options
@schedule_options
def command(
    topology: Topology, root: int, tree: str, arity: int | None, output_format: str
) -> None:
    """Reduce along a reversed broadcast tree: every rank sends to its parent."""
    schedule = reduce_tree(topology, root, tree, arity)
    print_schedule(topology, schedule, output_format, tree_text(schedule))
