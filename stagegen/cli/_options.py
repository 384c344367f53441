"""Options and output that several subcommands have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from stagegen.measure.launch.registry import LAUNCHERS
from stagegen.topology import parse_size

_Command = TypeVar("_Command", bound=Callable[..., Any])


def to_size(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Turn an option's text, such as 64KiB, into bytes; anything else is a usage error."""
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error


def topology_option(command: _Command) -> _Command:
    """Add `--topology FILE`."""
    return click.option(
        "--topology",
        "topology_file",
        required=True,
        metavar="FILE",
        help="The cluster's YAML file.",
    )(command)


def launcher_option(command: _Command) -> _Command:
    """Add `--launcher NAME`."""
    names = ", ".join(LAUNCHERS)
    return click.option("--launcher", metavar="NAME", help=f"{names}; see docs/lab.md.")(command)


def format_option(command: _Command) -> _Command:
    """Add `--format text|json`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help="Text is for people; JSON is for programs, in a stable form.",
    )(command)


def print_json(form: Mapping[str, Any]) -> None:
    """Print a JSON form on one line."""
    click.echo(json.dumps(form, ensure_ascii=False))


def columns(table: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as they need to be."""
    rows = list(table)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()
