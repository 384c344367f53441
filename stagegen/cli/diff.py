"""``stagegen diff``: two tables or logs side by side, by the time that their choices lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table as TextTable

from stagegen.catalogue import load_catalogue
from stagegen.cli._options import format_option, print_json
from stagegen.errors import InputError
from stagegen.measure.comparable import mixed_facts
from stagegen.parts import templates_beside
from stagegen.report.units import format_bytes
from stagegen.tune.decision import Table
from stagegen.tune.difference import (
    Difference,
    Range,
    Side,
    compare,
    table_of_fastest,
    total_of,
)
from stagegen.tune.loss import Key, Loss, by_key
from stagegen.tune.recorded import Recorded, read_recorded
from stagegen.tune.serving import Serving


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option(
    "--topology",
    "topology_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The cluster's YAML file, if a log has no topology.yaml beside it.",
)
@click.option(
    "--any-topology",
    is_flag=True,
    help="Compare also if the two were tuned for different topologies.",
)
@format_option
def command(
    a: Path, b: Path, topology_file: Path | None, any_topology: bool, output_format: str
) -> None:
    """Compare two tunings by lost time.

    A and B are generated folders, decision tables (decision.json) or logs (measurements.jsonl). A
    log alone chooses the fastest candidate that it measured. "A in B" is the share of time that A's
    choices lose by the times of B's log.
    """
    one, two = read_recorded(a, topology_file), read_recorded(b, topology_file)
    if one.topology_hash != two.topology_hash and not any_topology:
        raise InputError(
            f"{a} and {b} were tuned for different topologies; --any-topology compares them as "
            "they are"
        )
    sides = _side(one), _side(two)
    found = compare(*sides)
    differ = mixed_facts([*one.environments, *two.environments])
    if output_format == "json":
        print_json(_form(one, two, sides, found, differ))
    else:
        _print(sides, found, differ)


def _side(recorded: Recorded) -> Side:
    """Return the tables of a tuning, and the times of its log.

    Raises:
        InputError: it has a log, but the topology is unknown.
    """
    times = recorded.times()
    if recorded.decision is not None:
        measured = {} if times is None else recorded.measured()
        return Side(by_key(recorded.decision), times, measured)
    if times is None:
        raise InputError(
            "neither a decision table nor a log; give a folder of `stagegen tune`, its "
            "decision.json or its measurements.jsonl",
            recorded.path,
        )
    folder = recorded.path if recorded.path.is_dir() else recorded.path.parent
    catalogue = load_catalogue(added=templates_beside(folder))
    measured, may_serve = recorded.measured(), Serving(catalogue)
    tables: dict[Key, Table] = {}
    for (kind, ranks, hosts), name in measured.items():
        for collective, communicator in times.places:
            key = (collective, kind, ranks, hosts)
            able = partial(may_serve, collective, kind)
            if communicator == name and (table := table_of_fastest(times, key, name, able)):
                tables[key] = table
    return Side(tables, times, measured)


def _form(
    one: Recorded,
    two: Recorded,
    sides: tuple[Side, Side],
    found: tuple[Difference, ...],
    differ: Sequence[str],
) -> dict[str, Any]:
    a_in_b, b_in_a = total_of(found)
    return {
        "a": _about(one),
        "b": _about(two),
        "environments_differ": list(differ),
        "total": {"a_in_b": a_in_b, "b_in_a": b_in_a},
        "tables": [
            {
                **_named(one_of.key),
                "a_in_b": one_of.a_in_b.share,
                "b_in_a": one_of.b_in_a.share,
                "ranges": [_range(r) for r in one_of.ranges],
            }
            for one_of in found
        ],
        "only_in_a": [_named(key) for key in sides[0].tables if key not in sides[1].tables],
        "only_in_b": [_named(key) for key in sides[1].tables if key not in sides[0].tables],
    }


def _about(recorded: Recorded) -> dict[str, Any]:
    return {
        "path": str(recorded.path),
        "topology_hash": recorded.topology_hash,
        "table": recorded.decision is not None,
        "log": recorded.header is not None,
    }


def _named(key: Key) -> dict[str, Any]:
    return dict(zip(("collective", "communicator", "ranks", "hosts"), key, strict=True))


def _range(one: Range) -> dict[str, Any]:
    return {
        "from": one.first,
        "to": one.last,
        "a": one.a.spec,
        "b": one.b.spec,
        **_lost("a_in_b", one.a_in_b),
        **_lost("b_in_a", one.b_in_a),
    }


def _lost(name: str, loss: Loss) -> Mapping[str, Any]:
    """Return a loss, with the ratio at each size and the sizes that were not measured."""
    return {
        name: loss.share,
        f"{name}_ratios": {str(size): ratio for size, ratio in loss.ratios.items()},
        f"{name}_unmeasured": list(loss.unmeasured),
    }


def _print(sides: tuple[Side, Side], found: tuple[Difference, ...], differ: Sequence[str]) -> None:
    """Print the ranges in which the choices differ, and what they cost together."""
    table = TextTable(box=None, header_style="bold")
    for title in ("collective", "communicator", "ranks", "hosts", "sizes", "A", "B"):
        table.add_column(title)
    for title in ("A in B", "B in A"):
        table.add_column(title, justify="right")
    rows = [(d, r) for d in found for r in d.ranges if r.a != r.b]
    for one, r in rows:
        key = map(str, one.key)
        sizes = f"{format_bytes(r.first)} – {'' if r.last is None else format_bytes(r.last)}"
        losses = (_percent(r.a_in_b.share), _percent(r.b_in_a.share))
        table.add_row(*key, sizes, r.a.spec, r.b.spec, *losses)
    console = Console(width=160 if not Console().is_terminal else None, highlight=False)
    if rows:
        console.print(table)
    a_in_b, b_in_a = total_of(found)
    console.print(f"{len(found)} tables, {len(rows)} ranges of sizes with different choices")
    for side, other in ((0, 1), (1, 0)):
        missing = [key for key in sides[side].tables if key not in sides[other].tables]
        if missing:
            names = ", ".join(f"{c} on {k} of {n} ranks on {h} hosts" for c, k, n, h in missing)
            console.print(f"only in {'AB'[side]}: {names}")
    console.print(f"A's choices lose {_percent(a_in_b)} by B's times; "
                  f"B's choices lose {_percent(b_in_a)} by A's times")  # fmt: skip
    if differ:
        console.print(f"the logs are of different environments: {', '.join(differ)} differ")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
