"""Options and output that several subcommands have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from stagegen.catalogue import Catalogue
from stagegen.catalogue.selection import Selection, patterns_of
from stagegen.cli._output import form_option
from stagegen.measure.launch.registry import launcher_names
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
        is_eager=True,  # other options look beside it for a user's own parts
        metavar="FILE",
        help="The cluster's YAML file.",
    )(command)


def tree_option(command: _Command) -> _Command:
    """Add `--tree FILE`, as `trees`."""
    return click.option(
        "--tree",
        "trees",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A configured tree that competes as an algorithm; may be given several times.",
    )(command)


def launcher_option(command: _Command) -> _Command:
    """Add `--launcher NAME`."""
    names = ", ".join(launcher_names())
    text = f"What starts the ranks: {names}; see docs/launchers.md."
    return click.option("--launcher", metavar="NAME", help=text)(command)


def mpicc_option(command: _Command) -> _Command:
    """Add `--mpicc PROGRAM`."""
    text = "MPI compiler; default: $MPICC, or as installed."
    return click.option("--mpicc", metavar="PROGRAM", help=text)(command)


def selection_options(command: _Command) -> _Command:
    """Add the options that say which algorithms compete."""
    for add in (
        click.option(
            "--without-topology",
            is_flag=True,
            help="Leave out the algorithms that need a topology.",
        ),
        click.option(
            "--without-algorithms",
            metavar="A,B",
            help="Algorithms that do not compete: names or patterns as in --algorithms.",
        ),
        click.option(
            "--algorithms",
            metavar="A,B",
            help="Algorithms that compete, such as ring*,alltoall/aapc_*; default: all. Native "
            "routines always do.",
        ),
    ):
        command = add(command)
    return command


def catalogue_selecting(
    catalogue: Catalogue, algorithms: str | None, without: str | None, without_topology: bool
) -> Catalogue:
    """Return the catalogue with the algorithms that the options of a selection let compete.

    Raises:
        InputError: a pattern matches no algorithm, or leaves out the native routines.
    """
    selection = Selection(patterns_of(algorithms), patterns_of(without), without_topology)
    selection.require_known(catalogue.algorithms)
    return catalogue.selecting(selection)


def collectives_of(catalogue: Catalogue, names: str | None) -> tuple[str, ...]:
    """Return the collectives of an option, sorted; without it, those of a selection.

    Raises:
        click.UsageError: one is unknown.
    """
    if names is None:
        return catalogue.contested if catalogue.selection.algorithms else catalogue.collectives
    chosen = tuple(sorted(set(names.split(","))))
    unknown = set(chosen) - set(catalogue.collectives)
    if unknown:
        raise click.UsageError(
            f"unknown collective {', '.join(sorted(unknown))}; "
            f"choose from {', '.join(catalogue.collectives)}"
        )
    return chosen


def format_option(command: _Command) -> _Command:
    """Add `--format text|json`."""
    about = "Text is for people; JSON is for programs, in a stable form."
    return form_option(("text", "json"), about)(command)


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
