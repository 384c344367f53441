"""``stagegen schedule alltoall``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.schedule import SYNC_KINDS, PhaseSchedule, alltoall_schedule
from stagegen.topology import Topology


@click.command("alltoall")
@click.option(
    "--sync",
    type=click.Choice(SYNC_KINDS),
    default="receiver",
    show_default=True,
    help="What keeps the phases apart.",
)
@click.option("--root-switch", metavar="SWITCH", help="The root, where several switches qualify.")
@schedule_options
def command(topology: Topology, sync: str, root_switch: str | None, output_format: str) -> None:
    """Alltoall in as many phases as the bottleneck has load, without contention."""
    schedule = alltoall_schedule(topology, sync, root_switch)
    print_schedule(topology, schedule, output_format, _text(schedule))


def _text(schedule: PhaseSchedule) -> Iterator[str]:
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
