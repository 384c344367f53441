"""``stagegen schedule alltoall``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stagegen.cli._schedule.common import print_schedule, schedule_options
from stagegen.schedule import SCHEME_NAMES, SCHEMES, Message, PhaseSchedule, alltoall_schedule
from stagegen.topology import Topology


@click.command("alltoall")
@click.option(
    "--sync",
    type=click.Choice(SCHEME_NAMES),
    default="receiver",
    show_default=True,
    help="The scheme that keeps the phases apart.",
)
@click.option(
    "--block-size",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Phases of a block, for the schemes named `partial`.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many times its capacity a link may carry at a time, for schemes with tokens.",
)
@click.option("--root-switch", metavar="SWITCH", help="The root, if several switches qualify.")
@schedule_options
def command(
    topology: Topology,
    sync: str,
    block_size: int,
    window: int,
    root_switch: str | None,
    output_format: str,
) -> None:
    """Alltoall in as few phases as the links' loads allow, without contention."""
    schedule = alltoall_schedule(topology, sync, root_switch, block_size, window)
    print_schedule(topology, schedule, output_format, _text(schedule))


def _text(schedule: PhaseSchedule) -> Iterator[str]:
    subtrees = " ".join("{" + " ".join(map(str, ranks)) + "}" for ranks in schedule.subtrees)
    yield f"alltoall: {len(schedule.phases)} phases, root {schedule.root}, subtrees {subtrees}"
    yield f"at least {schedule.bound_phases} phases are needed: {_gap(schedule)}"
    yield f"sync {_sync(schedule)}"
    waits: dict[Message, list[str]] = {}
    for first, then, token in schedule.sync.syncs:
        told = "received" if token is None else f"token from {token[0]}"
        waits.setdefault(then, []).append(f"{first} ({told})")
    scheme, last = SCHEMES[schedule.sync.scheme], len(schedule.phases) - 1
    for phase, messages in enumerate(schedule.phases):
        yield f"phase {phase}"
        for message in messages:
            after = f"  after {', '.join(waits[message])}" if message in waits else ""
            yield f"  {message}{after}"
        yield from (f"  {message}  dummy" for message in _dummies(schedule, phase))
        ends_block = phase % schedule.sync.block_size == schedule.sync.block_size - 1
        if ends_block and phase < last and (scheme.barriers or scheme.blocks):
            yield "barrier" if scheme.barriers else "end of block"


def _gap(schedule: PhaseSchedule) -> str:
    return f"{schedule.gap:.1%} more than that" if schedule.gap else "no schedule has fewer"


def _sync(schedule: PhaseSchedule) -> str:
    scheme, graph = SCHEMES[schedule.sync.scheme], schedule.sync
    parts = [graph.scheme]
    if scheme.blocks:
        parts.append(f"blocks of {graph.block_size} phases")
    if scheme.giver:
        parts.append(f"window {graph.window}, {len(graph.syncs)} tokens")
    if scheme.dummies:
        parts.append(f"{sum(map(len, schedule.dummies))} dummy messages")
    return ", ".join(parts)


def _dummies(schedule: PhaseSchedule, phase: int) -> tuple[Message, ...]:
    return schedule.dummies[phase] if schedule.dummies else ()
