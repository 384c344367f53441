"""``stagegen schedule allreduce``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stagegen.cli._options import to_size
from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.schedule import RING_CONSTRUCTIONS, RingPipeline, ring_pipeline
from stagegen.topology import Topology


@click.command("allreduce")
@click.option(
    "--ring",
    type=click.Choice(RING_CONSTRUCTIONS),
    default="lr1",
    show_default=True,
    help="The ring.",
)
@click.option(
    "--size", callback=to_size, metavar="SIZE", help="Bytes of the vector: how long its data takes."
)
@schedule_options
def command(topology: Topology, ring: str, size: int | None, output_format: str) -> None:
    """Allreduce on a logical ring: reduce-scatter, then allgather."""
    schedule = ring_pipeline(topology, ring, size)
    print_schedule(topology, schedule, output_format, _text(schedule))


def _text(pipeline: RingPipeline) -> Iterator[str]:
    ring = pipeline.ring
    yield (
        f"allreduce: {pipeline.steps} steps over ring {ring.construction}, the first "
        f"{pipeline.combining_steps} of them combine; at most {ring.max_hops} switches between "
        "neighbours"
    )
    if pipeline.size is not None:
        yield f"{pipeline.size} bytes: {pipeline.seconds(pipeline.size):.6g} s for the data alone"
    yield "rank, host, the block that it sends first; later it sends what it received last"
    for rank in ring.order:
        yield f"  {rank}  {ring.ranks[rank]}  {pipeline.first_blocks[rank]}"
