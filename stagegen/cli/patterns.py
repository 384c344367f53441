"""``stagegen patterns``: the patterns of irregular collectives, of a recording or made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from stagegen.cli._checks import FiniteRange, require_with
from stagegen.cli._group import hosts_option, load_group
from stagegen.cli._options import columns, format_option, to_size
from stagegen.errors import InputError, NotFoundError
from stagegen.generate.write import write_file
from stagegen.patterns import FAMILIES, Merged, Pattern, make_pattern, merged_at, patterns_yaml
from stagegen.patterns.difference import SHOWN
from stagegen.patterns.file import read_patterns, require_name
from stagegen.patterns.model import PATTERN_RANKS_MOST
from stagegen.recording import read
from stagegen.recording.blocks import blocks_of
from stagegen.recording.container import is_recording
from stagegen.report.pattern_plot import pattern_plot
from stagegen.report.plots import can_plot
from stagegen.report.units import format_bytes, format_seconds
from stagegen.schedule.patterns.volume import Volume, cluster_of, volumes
from stagegen.topology import Topology

#: Links that the text names.
_LINKS = 4


class _Patterns(click.Group):
    """A group whose default subcommand takes a file."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            args = ["of", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["of", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Patterns)
def command() -> None:
    """Report the patterns of irregular collectives: `stagegen patterns FILE`, or make one."""


@command.command("of")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    type=FiniteRange(0, 1),
    default=0.05,
    show_default=True,
    help="Patterns that differ by at most this part of their bytes are one.",
)
@click.option("--topology", "topology_file", metavar="FILE", help="The cluster's YAML file.")
@hosts_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a pattern file.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a picture (SVG) of a pattern.",
)
@click.option("--name", metavar="NAME", help="The pattern of the picture; default: the first.")
@format_option
def of(
    file: Path,
    threshold: float,
    topology_file: str | None,
    hosts: str | None,
    output: Path | None,
    picture: Path | None,
    name: str | None,
    output_format: str,
) -> None:
    """Report the distinct patterns of a FILE: a recording, or a pattern file."""
    require_with("hosts", "--topology", topology_file)
    require_with("name", "--picture", picture)
    patterns, gaps = _patterns_of(file)
    topology = None if topology_file is None else load_group(topology_file, hosts)
    by_threshold = merged_at(patterns, sorted({*SHOWN, threshold}))
    found = by_threshold[threshold]
    if output is not None:
        _write(output, file, [one.pattern for one in found], threshold)
    if picture is not None:
        _draw(picture, [one.pattern for one in found], name)
    effect = [(at, len(of_it)) for at, of_it in by_threshold.items()]
    if output_format == "json":
        form = {
            "threshold": threshold,
            **asdict(gaps),
            "effect": [{"threshold": at, "patterns": count} for at, count in effect],
            "patterns": [_json(one, topology) for one in found],
        }
        click.echo(json.dumps(form, ensure_ascii=False))
        return
    for line in (*_notes(gaps, found), *_text(found, effect, topology)):
        click.echo(line)


@command.command("make")
@click.argument("family", type=click.Choice(tuple(FAMILIES)))
@click.option(
    "--ranks", type=click.IntRange(2, PATTERN_RANKS_MOST), required=True, help="How many ranks."
)
@click.option(
    "--average",
    callback=to_size,
    default="32KiB",
    show_default=True,
    metavar="SIZE",
    help="The mean block, empty ones included.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers.",
)
@click.option(
    "--number", type=float, help=f"{'; '.join(f'{k}: {v.number}' for k, v in FAMILIES.items())}."
)
@click.option("--name", metavar="NAME", help="Name of the pattern.")
@click.option(
    "--class",
    "is_class",
    is_flag=True,
    help="Mark it as an example of a class of patterns, not as a pattern of its own.",
)
def make(
    family: str,
    ranks: int,
    average: int,
    seed: int,
    number: float | None,
    name: str | None,
    is_class: bool,
) -> None:
    """Write a pattern of a FAMILY to standard output."""
    if name is not None:
        require_name(name, "--name")
    made = make_pattern(family, ranks, average, seed, number)
    pattern = replace(made, name=made.name if name is None else name, is_class=is_class)
    click.echo(patterns_yaml([pattern]), nl=False)


@dataclass(frozen=True)
class _Gaps:
    """What a recording lacks; a pattern file lacks nothing.

    Attributes:
        missing_ranks: the ranks that nothing is known of.
        dropped_calls: calls that ranks had no room for.
        unmatched_calls: calls that not all ranks of their communicator have.
        unknown_calls: calls without the lengths of some rank's blocks.
    """

    missing_ranks: tuple[int, ...] = ()
    dropped_calls: int = 0
    unmatched_calls: int = 0
    unknown_calls: int = 0

    def lines(self) -> Iterator[str]:
        """Yield them in words."""
        if self.missing_ranks:
            yield f"nothing is known of rank {', '.join(map(str, self.missing_ranks))}"
        if self.dropped_calls or self.unmatched_calls:
            yield f"{self.dropped_calls} calls left out; {self.unmatched_calls} lack a rank"
        if self.unknown_calls:
            yield f"{self.unknown_calls} calls lack the counts of some rank's blocks"


def _patterns_of(file: Path) -> tuple[Sequence[Pattern], _Gaps]:
    if not (file.is_dir() or (file.is_file() and is_recording(file))):
        return read_patterns(file), _Gaps()
    recording = read(file)
    blocks = blocks_of(recording)
    gaps = _Gaps(recording.missing, recording.dropped, blocks.unmatched, blocks.unknown)
    if not blocks.patterns and (lacking := "; ".join(gaps.lines())):
        raise NotFoundError(f"{file} has no whole call with blocks of any length: {lacking}")
    if not blocks.patterns:
        raise NotFoundError(
            f"{file} has no collective whose blocks may differ in length; record a program "
            "that calls MPI_Alltoallv or another one"
        )
    return blocks.patterns, gaps


def _notes(gaps: _Gaps, found: Sequence[Merged]) -> Iterator[str]:
    yield from gaps.lines()
    if others := ", ".join(one.pattern.name for one in found if not one.pattern.is_blocking):
        yield (
            "not of blocking calls, so no rule serves them, and --output leaves them out: " + others
        )


def _write(output: Path, file: Path, patterns: Sequence[Pattern], threshold: float) -> None:
    """Write the patterns of blocking calls; a file cannot tell communicators of the same ranks."""
    blocking = [replace(one, ordinal=0) for one in patterns if one.is_blocking]
    if patterns and not blocking:
        raise NotFoundError(f"{file} has no pattern of blocking calls, so there is none to write")
    distinct = merged_at(blocking, (threshold,))[threshold]
    write_file(output, patterns_yaml(one.pattern for one in distinct))


def _draw(file: Path, patterns: Sequence[Pattern], name: str | None) -> None:
    chosen = [one for one in patterns if name in (None, one.name)]
    if not patterns:
        raise NotFoundError(f"{file}: the input has no pattern to draw")
    if not chosen:
        known = ", ".join(one.name for one in patterns) or "none"
        raise NotFoundError(f"there is no pattern {name!r}; there is {known}")
    if not can_plot():
        raise InputError("a picture needs matplotlib: install stagegen[report]")
    write_file(file, pattern_plot(chosen[0]) + "\n")


def _json(one: Merged, topology: Topology | None) -> dict[str, Any]:
    form = {
        **one.pattern.to_json(),
        "blocking": one.pattern.is_blocking,
        "members": one.members,
        "farthest": one.farthest,
    }
    if topology is not None:
        links = _volumes(topology, one.pattern)
        form["links"] = links and [
            {"edge": list(link.edge), "bytes": link.bytes, "seconds": link.seconds}
            for link in links
        ]
        form["bound_seconds"] = links[0].seconds if links else None
    return form


def _text(
    found: Sequence[Merged],
    effect: Sequence[tuple[float, int]],
    topology: Topology | None,
) -> Iterator[str]:
    yield "patterns by threshold: " + ", ".join(f"{at:g}: {count}" for at, count in effect)
    head = ("name", "collective", "site", "ranks", "calls", "bytes", "average", "empty", "skew",
            "largest", "merged", "farthest")  # fmt: skip
    yield from columns([head, *(_cells(one) for one in found)])
    if topology is None:
        return
    for one in found:
        links = _volumes(topology, one.pattern)
        if links is None:
            yield f"{one.pattern.name}: no bound: {_why_nowhere(topology, one.pattern)}"
        elif unknown := _unknown_ranks(topology, one.pattern):
            yield f"{one.pattern.name}: taken for all ranks in their order: {unknown}"
        if links:
            first = ", ".join(
                f"{a}→{b} {link.bytes} B ({format_seconds(link.seconds)})"
                for link in links[:_LINKS]
                for a, b in (link.edge,)
            )
            yield f"{one.pattern.name}: at least {format_seconds(links[0].seconds)}; links: {first}"


def _unknown_ranks(topology: Topology, pattern: Pattern) -> str:
    """Say which ranks of a pattern's communicator the cluster lacks; nothing if it has them all."""
    lacking = [rank for rank in pattern.communicator or () if rank >= topology.rank_count]
    if not lacking:
        return ""
    named = ", ".join(map(str, lacking[:_LINKS])) + (" …" if len(lacking) > _LINKS else "")
    return f"`communicator:` has rank {named}; the cluster has 0 to {topology.rank_count - 1}"


def _why_nowhere(topology: Topology, pattern: Pattern) -> str:
    return _unknown_ranks(topology, pattern) or (
        f"its {pattern.ranks} ranks are not known among the cluster's {topology.rank_count}; write "
        "`communicator:` with them in the file"
    )


def _volumes(topology: Topology, pattern: Pattern) -> Sequence[Volume] | None:
    """Return what must cross each link; None if it is not known where the pattern's ranks are."""
    cluster = cluster_of(topology, pattern)
    return None if cluster is None else volumes(cluster, pattern)


def _cells(one: Merged) -> tuple[str, ...]:
    pattern = one.pattern
    return (
        pattern.name,
        pattern.collective,
        pattern.site or "–",
        str(pattern.ranks),
        str(len(pattern.calls)),
        str(pattern.total),
        format_bytes(round(pattern.average)),
        f"{pattern.sparsity:.0%}",
        f"{pattern.skew:.3g}",
        f"{pattern.largest_over_mean:.3g}",
        str(one.members),
        f"{one.farthest:.3g}",
    )
