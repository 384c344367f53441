"""``stagegen schedule alltoallv``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from stagegen.cli._group import hosts_option, load_group
from stagegen.cli._options import format_option, to_size, topology_option
from stagegen.cli._output import output_option, put_out
from stagegen.errors import NotFoundError
from stagegen.patterns import Pattern, read_patterns
from stagegen.report.units import format_seconds
from stagegen.schedule import (
    PATTERN_CONSTRUCTIONS,
    PatternSchedule,
    Piece,
    aggregated,
    pattern_schedule,
)
from stagegen.schedule.verify import verify


@click.command("alltoallv")
@topology_option
@hosts_option
@click.option(
    "--pattern",
    "file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Patterns: `stagegen patterns` writes them.",
)
@click.option("--name", metavar="NAME", help="Which pattern of the file; default: its first.")
@click.option(
    "--schedule",
    "construction",
    type=click.Choice(PATTERN_CONSTRUCTIONS),
    default="segments",
    show_default=True,
    help="How to order the messages.",
)
@click.option(
    "--segment",
    callback=to_size,
    metavar="SIZE",
    help="Bytes of a part; default: the best of several.",
)
@click.option(
    "--by-host", is_flag=True, help="Send one message from host to host, for all of their ranks."
)
@format_option
@output_option
def command(
    topology_file: str,
    hosts: str | None,
    file: Path,
    name: str | None,
    construction: str,
    segment: int | None,
    by_host: bool,
    output_format: str,
    output: Path | None,
) -> None:
    """Alltoallv of a pattern: an order of its messages that overloads no link."""
    if segment is not None and construction != "segments":
        raise click.UsageError(f"--segment needs --schedule segments, not {construction}")
    topology, pattern = load_group(topology_file, hosts), _chosen(file, name)
    if by_host:
        topology, pattern = aggregated(topology, pattern)
    schedule = pattern_schedule(topology, pattern, construction, segment)
    proof = verify(topology, schedule)
    if output_format == "json":
        lines = [json.dumps(schedule.to_json(), ensure_ascii=False)]
    else:
        lines = [*_text(schedule), "", "checked: " + proof.lines()[0], *proof.lines()[1:]]
    put_out("".join(f"{line}\n" for line in lines).encode(), output)


def _chosen(file: Path, name: str | None) -> Pattern:
    patterns = {one.name: one for one in read_patterns(file) if one.is_matrix}
    if not patterns or (name is not None and name not in patterns):
        known = ", ".join(patterns) or "none"
        raise NotFoundError(f"{file} has no alltoallv {name or ''}; it has {known}")
    chosen = patterns[name] if name is not None else next(iter(patterns.values()))
    return chosen.in_world_order


def _text(schedule: PatternSchedule) -> Iterator[str]:
    pieces = sum(map(len, schedule.phases))
    yield (
        f"alltoallv: {pieces} messages in {len(schedule.phases)} phases ({schedule.construction}), "
        f"{len(schedule.waits)} tokens"
    )
    if schedule.gap is None:
        yield f"no link carries data, so there is no bound; {format_seconds(schedule.seconds)}"
    else:
        yield (
            f"the data takes {format_seconds(schedule.seconds)}, at least "
            f"{format_seconds(schedule.bound_seconds)} in any order: a gap of {schedule.gap:.1%}"
        )
    waits: dict[Piece, list[str]] = {}
    for first, then in schedule.waits:
        waits.setdefault(then, []).append(str(first))
    for number, phase in enumerate(schedule.phases):
        yield f"phase {number}"
        for piece in phase:
            size = piece.bytes_of(schedule.sizes[piece.source][piece.destination])
            after = f"  after {', '.join(waits[piece])}" if piece in waits else ""
            yield f"  {piece}  {size} B{after}"
