"""The options of ``stagegen tune`` that say how calls are timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from stagegen.cli._parts import own_parts
from stagegen.errors import InputError
from stagegen.generate.timings import BUILT_IN, Mechanism, read_mechanism
from stagegen.measure.iterations import ADAPTIVE, Iterations
from stagegen.measure.timing import IDLE, METRICS, Timing

#: Milliseconds of computation; the source took 25 (Faraj 2006, §4.1.2.4).
COMPUTATION = 25.0

#: A minute: more is taken for a mistake.
COMPUTATION_MOST = 60_000.0

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _mechanism(ctx: click.Context, _param: click.Parameter, text: str) -> Mechanism:
    """Return a mechanism of stagegen by its name, or a user's own: in a file, or by name.

    Raises:
        InputError: the file is none, or the user's parts are wrong.
        click.BadParameter: there is none of that name.
    """
    if text in BUILT_IN:
        return BUILT_IN[text]
    if text.endswith(".c"):
        return read_mechanism(Path(text))
    own = own_parts(ctx.params.get("topology_file"), None).timings
    if text in own:
        return read_mechanism(own[text])
    names = ", ".join((*BUILT_IN, *own))
    raise click.BadParameter(f"{text!r} is none of {names}; a file of your own ends in .c")


def _iterations(_ctx: click.Context, _param: click.Parameter, text: str) -> Iterations:
    """Return what :meth:`Iterations.parse` reads; anything else is a usage error."""
    try:
        return Iterations.parse(text)
    except ValueError as error:
        wanted = "adaptive, source, a number, or FROM:CALLS,… such as 1:100,8KiB:50"
        raise click.BadParameter(f"{error}; expected {wanted}") from error


_OPTIONS = (
    click.option(
        "--timing",
        callback=_mechanism,
        metavar="NAME|FILE.c",
        default="barrier",
        show_default=True,
        help=f"How calls are timed: {', '.join(BUILT_IN)}, or a C file; see docs/timing.md.",
    ),
    click.option(
        "--computation",
        type=click.FloatRange(min=0, max=COMPUTATION_MOST),
        metavar="MS",
        default=COMPUTATION,
        show_default=True,
        help="Milliseconds that each rank computes before a call, if --timing is computation or "
        "a C file.",
    ),
    click.option(
        "--metric",
        type=click.Choice(METRICS),
        default=METRICS[0],
        show_default=True,
        help="The time of a call: that of its slowest rank, or the mean over the ranks.",
    ),
    click.option(
        "--iterations",
        callback=_iterations,
        metavar="ITER",
        default=ADAPTIVE,
        show_default=True,
        help="Calls in a repetition: adaptive, source (100 to 5 by size), a number, or "
        "FROM:CALLS,… such as 1:100,8KiB:50.",
    ),
)


def timing_options(command: _Command) -> _Command:
    """Add ``--timing``, ``--computation``, ``--metric`` and ``--iterations``."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


def timing_of(
    mechanism: Mechanism, computation: float, metric: str, iterations: Iterations
) -> Timing:
    """Return what the options ask for."""
    milliseconds = 0.0 if mechanism.name in IDLE else computation
    return Timing(mechanism.name, milliseconds, metric, iterations, mechanism.hash)


def mechanism_to_resume(given: Mechanism, logged: Timing, path: Path) -> Mechanism:
    """Return the mechanism with which a log goes on; the options were compared with it before.

    Raises:
        InputError: it is a user's own, and its file was not named; or it computed by the number of
            operations.
    """
    if logged.operations:
        raise InputError(
            "this log gives the computation in operations, not in milliseconds; measure anew",
            path,
            1,
        )
    if not logged.hash:
        return BUILT_IN[logged.mechanism]
    if given.hash != logged.hash:
        raise InputError(
            f"this log was measured with {logged.mechanism}.c; name it with --timing", path, 1
        )
    return given
