"""The ``stagegen`` command: one module per subcommand, loaded when it is called.

A subcommand ``name`` lives in the module ``stagegen.cli.name`` as the click command
``command``. Exit statuses are the contract of ``docs/interfaces.md``: 0 success, 1 failure,
2 wrong input or usage, 3 the asked-for object does not exist.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from pathlib import Path

import click

from stagegen import __version__
from stagegen.errors import StagegenError


class _Subcommands(click.Group):
    """Finds the subcommands in the folder listing and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (path.stem for path in Path(__file__).parent.glob("*.py"))
        return sorted(name for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"stagegen.cli.{cmd_name}").command
        return command


@click.group(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def group() -> None:
    """Generate tuned MPI collective routines for a cluster's own tree of switches."""


def main() -> None:
    """Run the command line; typed errors become one line on standard error and an exit status.

    So do errors of the system, such as a full disk behind standard output. Signals that were
    ignored at the start, as under ``nohup`` and in the background of a script, stay ignored:
    Python sees to that for SIGINT, and nothing here changes any other.
    """
    _open_closed_streams()
    _escape_what_is_not_encoded()
    try:
        group(prog_name="stagegen")
    except StagegenError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_status)
    except OSError as error:
        click.echo(f"{error.filename or 'standard output'}: {error.strerror or error}", err=True)
        _drop_output()
        sys.exit(1)


def _open_closed_streams() -> None:
    """Open the null device for every standard stream that the starter closed.

    Otherwise the next file or socket would get its number, and a job would take it for its stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            os.set_inheritable(number, True)


def _escape_what_is_not_encoded() -> None:
    """Let standard output take every character, escaped where its encoding lacks it.

    Standard error does so anyway.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Discard what standard output did not take, which would fail once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
