"""``--for``: tune what a program calls, as its traces say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from click.core import ParameterSource

from stagegen.catalogue import Catalogue
from stagegen.topology import Topology
from stagegen.tune.program import Program, program_of, read_trace
from stagegen.tune.program import options_for as program_options
from stagegen.tune.scope import Options

#: The options that a trace decides, so that they cannot be given.
_SAID = ("collectives", "communicators", "sizes")

program_option = click.option(
    "--for",
    "traces",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="TRACE",
    help="Tune only what a program calls: a recording of `stagegen record` (a file, or a folder of "
    "its parts), or a file of LIBCOLL_TRACE=json:FILE; may be given several times.",
)


def options_for(
    traces: tuple[Path, ...],
    topology: Topology,
    catalogue: Catalogue,
    options: Options,
    say: Callable[[str], None],
) -> Options:
    """Return options for a program; without traces, as they are. Says what is covered.

    Raises:
        InputError: a trace cannot be read, or no table can serve its calls.
        click.UsageError: the command line has options that the traces decide.
    """
    if not traces:
        return options
    context = click.get_current_context()
    for name in _SAID:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--for and --{name} exclude each other")
    program = program_of((one for path in traces for one in read_trace(path, topology)), topology)
    say(_summary(program))
    return program_options(program, options, catalogue, topology)


def _summary(program: Program) -> str:
    count = sum(len(one.sizes) for one in program.wanted)
    text = f"{count} sizes of {len({one.collective for one in program.wanted})} collectives take "
    text += (
        f"{program.covered / program.seconds:.1%} of the time in the traces"
        if program.seconds
        else "all calls of the traces"
    )
    if program.unknown > 0:
        text += f"; no table can serve {program.unknown / program.seconds:.1%}"
    return text
