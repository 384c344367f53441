"""Options and output that several subcommands have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from stagegen.topology import parse_size

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Size(click.ParamType):
    """A size in bytes, such as 65536 or 64KiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the size in bytes; anything else is a usage error."""
        try:
            return value if isinstance(value, int) else parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def topology_option(command: _Command) -> _Command:
    """Add `--topology FILE`."""
    return click.option(
        "--topology",
        "topology_file",
        required=True,
        metavar="FILE",
        help="The cluster's YAML file.",
    )(command)


def format_option(command: _Command) -> _Command:
    """Add `--format text|json`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help="Text is for people; JSON is for programs and stays as it is.",
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
