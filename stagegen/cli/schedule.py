"""``stagegen schedule``: the schedules for a cluster, proven before they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from stagegen.cli._options import format_option, print_json, topology_option
from stagegen.schedule import (
    RING_KINDS,
    SYNC_KINDS,
    TREE_KINDS,
    PhaseSchedule,
    Ring,
    Tree,
    alltoall_schedule,
    broadcast_tree,
    logical_ring,
)
from stagegen.schedule.verify import verify
from stagegen.topology import Topology, load_topology


@click.group()
def command() -> None:
    """Compute the schedule of a collective for a cluster."""


@command.command()
@topology_option
@click.option(
    "--sync",
    type=click.Choice(SYNC_KINDS),
    default="receiver",
    show_default=True,
    help="What keeps the phases apart.",
)
@click.option("--root-switch", metavar="SWITCH", help="The root, where several switches qualify.")
@format_option
def alltoall(topology_file: str, sync: str, root_switch: str | None, output_format: str) -> None:
    """Alltoall in as many phases as the bottleneck has load, without contention."""
    topology = load_topology(topology_file)
    schedule = alltoall_schedule(topology, sync, root_switch)
    _print(topology, schedule, output_format, _alltoall_text(schedule))


@command.command()
@topology_option
@click.option(
    "--ring", type=click.Choice(RING_KINDS), default="lr1", show_default=True, help="The ring."
)
@format_option
def allgather(topology_file: str, ring: str, output_format: str) -> None:
    """Allgather on a logical ring without contention."""
    topology = load_topology(topology_file)
    schedule = logical_ring(topology, ring)
    _print(topology, schedule, output_format, _ring_text(schedule))


@command.command()
@topology_option
@click.option("--root", type=int, default=0, show_default=True, help="The rank with the data.")
@click.option(
    "--tree", type=click.Choice(TREE_KINDS), default="linear", show_default=True, help="The tree."
)
@format_option
def bcast(topology_file: str, root: int, tree: str, output_format: str) -> None:
    """Broadcast along a tree without contention."""
    topology = load_topology(topology_file)
    schedule = broadcast_tree(topology, root, tree)
    _print(topology, schedule, output_format, _tree_text(schedule))


def _print(
    topology: Topology,
    schedule: PhaseSchedule | Ring | Tree,
    output_format: str,
    text: Iterable[str],
) -> None:
    """Check a schedule, then print it."""
    proof = verify(topology, schedule)
    if output_format == "json":
        print_json(schedule.to_json())
    else:
        click.echo("\n".join([*text, "", "checked: " + proof.lines()[0], *proof.lines()[1:]]))


def _alltoall_text(schedule: PhaseSchedule) -> Iterator[str]:
    subtrees = " ".join("{" + " ".join(map(str, ranks)) + "}" for ranks in schedule.subtrees)
    yield f"alltoall: {len(schedule.phases)} phases, root {schedule.root}, subtrees {subtrees}"
    waits: dict[object, list[str]] = {}
    for first, then, token in schedule.sync.syncs:
        told = "received" if token is None else f"token from {token[0]}"
        waits.setdefault(then, []).append(f"{first} ({told})")
    for phase, messages in enumerate(schedule.phases):
        yield f"phase {phase}"
        for message in messages:
            after = f"  after {', '.join(waits[message])}" if message in waits else ""
            yield f"  {message}{after}"


def _ring_text(ring: Ring) -> Iterator[str]:
    yield f"allgather: ring {ring.kind}, at most {ring.max_hops} switches between neighbours"
    yield from (f"  {rank}  {ring.ranks[rank]}" for rank in ring.order)


def _tree_text(tree: Tree) -> Iterator[str]:
    yield f"bcast: tree {tree.kind} from rank {tree.root}, height {tree.height}"
    yield from (f"  {edge}" for edge in tree.edges)
