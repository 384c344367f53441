"""``stagegen schedule allgather``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.schedule import RING_CONSTRUCTIONS, Ring, logical_ring
from stagegen.topology import Topology


@click.command("allgather")
@click.option(
    "--ring",
    type=click.Choice(RING_CONSTRUCTIONS),
    default="lr1",
    show_default=True,
    help="The ring.",
)
@schedule_options
def command(topology: Topology, ring: str, output_format: str) -> None:
    """Allgather on a logical ring without contention."""
    schedule = logical_ring(topology, ring)
    print_schedule(topology, schedule, output_format, _text(schedule))


def _text(ring: Ring) -> Iterator[str]:
    hops = f"at most {ring.max_hops} switches between neighbours"
    yield f"allgather: ring {ring.construction}, {hops}"
    yield from (f"  {rank}  {ring.ranks[rank]}" for rank in ring.order)
