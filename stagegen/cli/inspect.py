"""``stagegen inspect``: where the time of a collective goes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from stagegen.cli._options import print_json, to_size
from stagegen.cli._output import json_options
from stagegen.errors import NotFoundError
from stagegen.generate.write import write_file
from stagegen.inspection.findings import TreeFindings
from stagegen.inspection.look import Look, looks_at
from stagegen.inspection.node_findings import NodeFindings
from stagegen.inspection.parts import typical_parts
from stagegen.inspection.series import SKIPPED
from stagegen.inspection.spread import Spread
from stagegen.inspection.timeline import StepFindings
from stagegen.report.inspection_page import render_inspection
from stagegen.report.units import format_bytes, format_seconds
from stagegen.topology import Topology, load_topology
from stagegen.topology.host_names import host_named

#: Rows of a table in the text; places in an order, for which it has room.
_ROWS, _PLACES = 24, 12


@click.command()
@click.option(
    "--routine",
    metavar="COLLECTIVE/NAME",
    help="Only calls of this routine, or of this collective; default: all.",
)
@click.option("--size", callback=to_size, metavar="SIZE", help="Only calls of this size.")
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=SKIPPED,
    show_default=True,
    help="First calls of each routine and size that are left out.",
)
@click.option(
    "--by-clocks",
    is_flag=True,
    help="Time each direction by the clocks; default: half of a message's time there and back.",
)
@click.option(
    "--topology",
    "topology_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The cluster's YAML file: also tell how links are used.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page."
)
@json_options
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(
    routine: str | None,
    size: int | None,
    skip: int,
    by_clocks: bool,
    topology_file: Path | None,
    html: Path | None,
    as_json: bool,
    output_format: str,
    files: tuple[Path, ...],
) -> None:
    """Report where the time of collectives goes, from FILES of a library of `make TRACE=1`.

    Several FILES are put side by side.
    """
    topology = None if topology_file is None else load_topology(topology_file)
    looks = [
        look
        for file in files
        for look in looks_at(file, skip=skip, by_clocks=by_clocks, topology=topology)
        if _is_wanted(look, routine, size)
    ]
    if topology is not None:
        _tell_strangers(topology, looks)
    if not looks:
        raise NotFoundError(
            f"no such calls in {', '.join(map(str, files))}, or not more than {skip} of them"
        )
    if html is not None:
        write_file(html, render_inspection(looks))
    if as_json or output_format == "json":
        print_json({"series": [look.to_json() for look in looks]})
        return
    width = 150 if not Console().is_terminal else None
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    if len(looks) > 1:
        console.print(_overview(looks))
    for look in looks:
        _print_look(console, look)


def _is_wanted(look: Look, routine: str | None, size: int | None) -> bool:
    names = look.series.routine, look.series.collective
    return (routine is None or routine in names) and size in (None, look.series.size)


def _table(title: str | None, first: Sequence[str], others: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", title=title, title_justify="left")
    for name in first:
        table.add_column(name, overflow="fold")
    for name in others:
        table.add_column(name, justify="right")
    return table


def _overview(looks: Sequence[Look]) -> Table:
    table = _table(
        None,
        ("file", "routine"),
        ("size", "ranks", "calls", "a call", "delay", "slowest", "fastest"),
    )
    for look in looks:
        ends = ("–", "–")
        if look.tree is not None:
            ends = (
                format_seconds(look.tree.slowest.total(waits=False)),
                format_seconds(look.tree.fastest.total(waits=False)),
            )
        series = look.series
        table.add_row(
            look.name,
            series.routine,
            format_bytes(series.size),
            str(len(series.hosts)),
            str(len(series)),
            format_seconds(look.elapsed),
            format_seconds(look.delay),
            *ends,
        )
    return table


def _tell_strangers(topology: Topology, looks: Sequence[Look]) -> None:
    """Say which hosts of the files the topology lacks."""
    hosts = dict.fromkeys(host for look in looks for host in look.series.hosts)
    if strangers := [host for host in hosts if host_named(topology, host) is None]:
        click.echo(
            f"warning: the topology has no host {', '.join(strangers)}; messages from and to "
            f"{'it' if len(strangers) == 1 else 'them'} count on no link",
            err=True,
        )


def _print_look(console: Console, look: Look) -> None:
    series = look.series
    click.echo(
        f"\n{look.name}: {series.routine}, {format_bytes(series.size)}, {len(series.hosts)} ranks "
        f"on {len(set(series.hosts))} hosts, {len(series)} calls after the first {series.skipped}"
    )
    click.echo(
        f"a call takes {format_seconds(look.elapsed)}; from the last arrival to the last exit "
        f"{format_seconds(look.delay)}"
    )
    proven = look.clocks.proven
    bound = format_seconds(proven) if math.isfinite(proven) else "not bounded"
    click.echo(
        f"clock error between two ranks: {format_seconds(look.clocks.error)} (proven: {bound})"
    )
    if look.lost:
        click.echo(
            f"{look.lost} calls of the file were overwritten (see LIBCOLL_EVENTS_ROOM), or are on "
            f"too many communicators (see the limits in docs/inspect.md)"
        )
    if look.unmatched:
        click.echo(f"{look.unmatched} calls of the file lack a rank: only some have kept them")
    if look.tree is not None:
        _print_tree(console, look.tree)
    elif look.steps is not None:
        _print_steps(console, look.steps)
    if look.links:
        table = _table("links in a call of median length", ("link",), ("messages", "idle"))
        for use in look.links[:_ROWS]:
            table.add_row(use.name, str(use.messages), f"{use.idle:.0%}")
        console.print(table)


def _print_tree(console: Console, tree: TreeFindings) -> None:
    console.print(_nodes(tree))
    console.print(_parts(tree))
    console.print(_parts_by_messages(tree))
    table = _table("the slowest rank of a call", ("part of its path",), ("typical",))
    for part, mean in typical_parts(tree.slowest_ranks).items():
        table.add_row(part, format_seconds(mean))
    console.print(table)
    for title, one in (("fastest", tree.fastest), ("slowest", tree.slowest)):
        columns = ("mean", "median", "stdev", "min", "max", "10-perc", "90-perc")
        table = _table(f"stages of the {title} rank, {one.rank}", ("stage",), columns)
        for name, spread in one.spreads():
            table.add_row(name, *_spread(spread))
        console.print(table)
    if tree.busiest is not None:
        for table in _orders(tree, tree.busiest):
            console.print(table)
    table = _table("hotspots", ("where",), ("mean of all ranks", "share"))
    for spot in tree.hotspots():
        table.add_row(spot.title, format_seconds(spot.seconds), f"{spot.share:.0%}")
    console.print(table)
    if tree.treeless:
        click.echo(f"{tree.treeless} calls had no tree and were left out")


def _spread(spread: Spread) -> Iterator[str]:
    yield from map(
        format_seconds,
        (
            spread.mean,
            spread.median,
            spread.stdev,
            spread.least,
            spread.greatest,
            spread.low,
            spread.high,
        ),
    )


def _mean(values: Sequence[float]) -> str:
    return format_seconds(sum(values) / len(values)) if values else "–"


def _nodes(tree: TreeFindings) -> Table:
    others = ("contributors", "down", "up", "core", "wrapper", "arrival wait", "departure wait")
    table = _table("inner nodes", ("rank", "host"), others)
    for node in tree.by_size[:_ROWS]:
        table.add_row(
            str(node.rank),
            node.host,
            str(len(node.contributors)),
            _mean(node.down),
            _mean(node.up),
            _mean(node.core),
            _mean(node.wrapper),
            _mean(node.all_arrival_waits),
            _mean(node.all_departure_waits),
        )
    if len(tree.by_size) > _ROWS:
        table.caption = f"… and {len(tree.by_size) - _ROWS} more: see --json"
    return table


def _parts(tree: TreeFindings) -> Table:
    """Return Table 3 of Bongo et al."""
    ends = tree.fastest, tree.slowest
    titles = [
        f"{word} rank ({one.rank})" for word, one in zip(("fastest", "slowest"), ends, strict=True)
    ]
    table = _table("mean time by parts of the tree", ("part",), titles)
    rows: list[dict[str, Any]] = [one.parts() for one in ends]
    for part in rows[0]:
        table.add_row(part, *(format_seconds(row[part]) for row in rows))
    return table


def _parts_by_messages(tree: TreeFindings) -> Table:
    """Return Table 4 of Bongo et al."""
    ends = tree.by_messages()
    titles = [f"{name} ({one.rank})" for name, one in ends.items()]
    table = _table("by messages between hosts on the way", ("part",), titles)
    rows = [one.parts() for one in ends.values()]
    for part in rows[0]:
        table.add_row(part, *(format_seconds(row[part]) for row in rows))
    return table


def _orders(tree: TreeFindings, node: NodeFindings) -> Iterator[Table]:
    """Return Table 1 of Bongo et al., and the orders of each contributor; of one way if one is."""
    at = f"at the node of rank {node.rank}"
    both = {f"{place}. arrival": row for place, row in enumerate(node.order_table(), 1)}
    ways = {"arrival": node.arrival_shares, "departure": node.departure_shares}
    if both:
        yield _places(f"order of arrivals and departures {at}", "", "dep", both)
    for word, shares in ways.items():
        rows = {tree.contributor_title(name): row for name, row in shares.items()}
        if rows:
            yield _places(f"order of {word}s {at}", "contributor", word[:3], rows)


def _places(title: str, first: str, word: str, rows: Mapping[str, Sequence[float]]) -> Table:
    """Return shares by places."""
    size = len(next(iter(rows.values())))
    table = _table(title, (first,), [f"{place}. {word}" for place in range(1, size + 1)][:_PLACES])
    for name, row in list(rows.items())[:_ROWS]:
        table.add_row(name, *(f"{share:.1%}" for share in row[:_PLACES]))
    if size > _PLACES or len(rows) > _ROWS:
        table.caption = f"… of {size} places and {len(rows)} rows: see --json"
    return table


def _print_steps(console: Console, found: StepFindings) -> None:
    word = "phase" if found.has_phases else "step"
    columns = ("messages", "first start", "last end", "a message", "longest")
    table = _table(f"by {word}s, from the last arrival on", (word,), columns)
    for one in found.steps[:_ROWS]:
        table.add_row(
            one.title,
            f"{one.messages:g}",
            *map(format_seconds, (one.start, one.end, one.took, one.greatest)),
        )
    if len(found.steps) > _ROWS:
        table.caption = f"… and {len(found.steps) - _ROWS} more: see --json"
    console.print(table)
    order = sorted(range(len(found.idle)), key=lambda rank: found.idle[rank])
    click.echo(
        f"share of a call without a message on its way: least {found.idle[order[0]]:.0%} "
        f"(rank {order[0]}), most {found.idle[order[-1]]:.0%} (rank {order[-1]})"
    )
