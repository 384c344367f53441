"""The options of ``stagegen tune`` that say how calls are timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from stagegen.cli._arrivals import PLANS, read_plan
from stagegen.cli._checks import FiniteRange
from stagegen.cli._parts import own_parts
from stagegen.errors import InputError
from stagegen.generate.timings import BUILT_IN, Mechanism, read_mechanism
from stagegen.measure.arrivals import Arrivals, Imbalance, Replay
from stagegen.measure.iterations import ADAPTIVE, PRESETS, Iterations
from stagegen.measure.timing import IDLE, METRICS, Timing, mechanisms_help, metrics_of

#: Milliseconds of computation; the source took 25 (Faraj 2006, §4.1.2.4).
COMPUTATION = 25.0

#: A minute: more counts as a mistake.
COMPUTATION_MOST = 60_000.0

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Chosen:
    """What ``--timing`` says.

    Attributes:
        mechanism: of stagegen, or a user's own.
        arrivals: how late ranks come, if the mechanism makes them late.
    """

    mechanism: Mechanism
    arrivals: Arrivals | None = None


def _mechanism(ctx: click.Context, _param: click.Parameter, text: str) -> Chosen:
    """Return what ``--timing`` says, by the topology file of the command line."""
    return timing_chosen(text, ctx.params.get("topology_file"))


def timing_chosen(text: str, topology_file: str | None) -> Chosen:
    """Return a mechanism of stagegen by its name, or a user's own: in a file, or by name.

    Args:
        text: what ``--timing`` says.
        topology_file: of the cluster; a ``stagegen.yaml`` may be beside it.

    Raises:
        InputError: the file is no mechanism, or the user's parts are wrong.
        click.BadParameter: there is none of that name, or it lacks what it needs.
    """
    name, _, _ = text.partition(":")
    if name in PLANS:
        return Chosen(BUILT_IN[name], read_plan(text, topology_file))
    if text in BUILT_IN:
        return Chosen(BUILT_IN[text])
    if text.endswith(".c"):
        return Chosen(read_mechanism(Path(text)))
    own = own_parts(topology_file, None).timings
    if text in own:
        return Chosen(read_mechanism(own[text]))
    names = ", ".join((*BUILT_IN, *own))
    raise click.BadParameter(f"{text!r} is none of {names}; a file of your own ends in .c")


def arrivals_chosen(text: str, topology_file: str) -> Chosen:
    """Return what ``--arrivals`` says: ``imbalance:MAX``, late ranks, or a recording's FILE#SITE.

    Raises:
        InputError, click.BadParameter: as for ``--timing``.
    """
    name, separator, _ = text.partition(":")
    is_plan = separator and name in PLANS
    plan = text if is_plan or text in PLANS else f"replay:{text}"
    return Chosen(BUILT_IN[plan.partition(":")[0]], read_plan(plan, topology_file))


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
        help=f"How calls are timed: {mechanisms_help()}, or a C file; see docs/timing.md.",
    ),
    click.option(
        "--computation",
        type=FiniteRange(min=0, max=COMPUTATION_MOST),
        metavar="MS",
        default=COMPUTATION,
        show_default=True,
        help="Milliseconds that each rank computes before a call, if --timing is computation or "
        "a C file.",
    ),
    click.option(
        "--metric",
        type=click.Choice(METRICS),
        help="The time of a call: its slowest rank's (default), or the mean over the ranks. "
        "If ranks come late: the mean (default), or from the last arrival to the last exit.",
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
    chosen: Chosen,
    computation: float = COMPUTATION,
    metric: str | None = None,
    iterations: Iterations | None = None,
    seed: int = 1,
) -> Timing:
    """Return what the options ask for.

    Raises:
        click.BadParameter: the mechanism does not have this metric.
    """
    mechanism, arrivals = chosen.mechanism, chosen.arrivals
    metrics = metrics_of(mechanism.name)
    if metric is not None and metric not in metrics:
        why = (
            "the rank that was slowest is the one that waited longest for the others"
            if arrivals
            else "only imbalance and replay know when ranks arrive"
        )
        raise click.BadParameter(
            f"{metric} is no metric of {mechanism.name}: {why}; choose {' or '.join(metrics)}",
            param_hint="--metric",
        )
    if isinstance(arrivals, Imbalance):
        arrivals = replace(arrivals, seed=seed)
    milliseconds = 0.0 if mechanism.name in IDLE else computation
    return Timing(
        mechanism.name,
        milliseconds,
        metric or metrics[0],
        iterations or PRESETS[ADAPTIVE],
        mechanism.hash,
        arrivals=arrivals,
    )


def delays_seed_option(command: _Command) -> _Command:
    """Add ``--seed``, of a plan by which ranks come late."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=1,
        show_default=True,
        help="Seed of random delays.",
    )(command)


def to_resume(given: Chosen, logged: Timing, path: Path) -> Chosen:
    """Return the mechanism with which a log goes on; the options were compared with it before.

    Raises:
        InputError: it is a user's own, or replays a recording, and its file was not named; or the
            log gives the computation in operations.
    """
    if isinstance(logged.arrivals, Replay) and given.arrivals != logged.arrivals:
        raise InputError(
            f"this log was measured with other delays: a {logged.arrivals.text}; name the same "
            "recording with --timing replay:FILE#SITE",
            path,
            1,
        )
    if logged.operations:
        raise InputError(
            "this log gives the computation in operations, not in milliseconds; measure again",
            path,
            1,
        )
    if not logged.hash:
        arrivals = given.arrivals if isinstance(logged.arrivals, Replay) else logged.arrivals
        return Chosen(BUILT_IN[logged.mechanism], arrivals)
    if given.mechanism.hash != logged.hash:
        raise InputError(
            f"this log was measured with {logged.mechanism}.c; name it with --timing", path, 1
        )
    return given


def as_logged(given: Chosen, logged: Timing, path: Path) -> tuple[Timing, Mechanism]:
    """Return the timing of a log, with the C file or the recorded delays that the log lacks.

    Raises:
        InputError: the log was measured with another timing than the given one.
    """
    needed = to_resume(given, logged, path)
    plans = [plan and plan.unseeded for plan in (given.arrivals, logged.arrivals)]
    if given.mechanism.name != logged.mechanism or plans[0] != plans[1]:
        how = logged.arrivals.text if logged.arrivals else f"--timing {logged.mechanism}"
        raise InputError(f"this log was measured with {how}; leave out --timing", path, 1)
    return replace(logged, arrivals=needed.arrivals), needed.mechanism
