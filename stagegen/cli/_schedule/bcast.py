"""``stagegen schedule bcast``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.schedule import TREE_KINDS, Tree, broadcast_tree
from stagegen.topology import Topology


@click.command("bcast")
@click.option("--root", type=int, default=0, show_default=True, help="The rank with the data.")
@click.option(
    "--tree", type=click.Choice(TREE_KINDS), default="linear", show_default=True, help="The tree."
)
@schedule_options
def command(topology: Topology, root: int, tree: str, output_format: str) -> None:
    """Broadcast along a tree without contention."""
    schedule = broadcast_tree(topology, root, tree)
    print_schedule(topology, schedule, output_format, _text(schedule))


def _text(tree: Tree) -> Iterator[str]:
    yield f"bcast: tree {tree.kind} from rank {tree.root}, height {tree.height}"
    yield from (f"  {edge}" for edge in tree.edges)
