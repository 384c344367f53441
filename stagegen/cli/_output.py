"""Options for the place and form of a command's output, and the functions that write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from stagegen.errors import InputError

_Command = TypeVar("_Command", bound=Callable[..., Any])


def form_option(choices: Sequence[str], about: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds `--format`; the first choice is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help=about,
    )


def output_option(command: _Command) -> _Command:
    """Add `--output FILE`, for :func:`put_out`."""
    return click.option(
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="File to write to; default: standard output.",
    )(command)


def json_options(command: _Command) -> _Command:
    """Add `--json`, and `--format`, as other commands have it."""
    command = form_option(("text", "json"), "`json` is `--json`.")(command)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def put_out(form: bytes, output: Path | None) -> None:
    """Write a form to a file; to standard output if there is none.

    Raises:
        InputError: the file cannot be written.
    """
    if output is None:
        click.echo(form, nl=False)
        return
    try:
        output.write_bytes(form)
    except OSError as error:
        raise InputError(f"cannot write it: {error.strerror}", output) from error
