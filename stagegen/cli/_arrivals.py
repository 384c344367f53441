"""Plans of ranks that come late, as options name them: ``imbalance:16``, ``replay:FILE#SITE``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stagegen.errors import InputError
from stagegen.measure.arrivals import Arrivals, Imbalance, Replay
from stagegen.measure.timing import LATE
from stagegen.topology import Topology
from stagegen.tune.communicators import find_communicators

#: The mechanisms that have a plan.
PLANS = LATE


def read_plan(text: str) -> Arrivals:
    """Return the plan of ``imbalance:MAX`` or ``replay:FILE#SITE``.

    Raises:
        click.BadParameter: it is neither, or MAX is wrong; says what to give.
        InputError: the file is no recording, or has no such site.
    """
    name, _, rest = text.partition(":")
    if name == "imbalance":
        try:
            return Imbalance.parse(rest)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    raise click.BadParameter(f"{text!r} is no plan of arrivals; give imbalance:F")


def fitting(
    plan: Arrivals | None, topology: Topology, names: Sequence[str], *, asked: bool
) -> tuple[str, ...]:
    """Return the communicators that a plan is for: a recording is replayed on as many ranks.

    Args:
        plan: how late ranks come; None if they do not.
        topology: the cluster.
        names: of communicators.
        asked: whether the user named them: then all must fit.

    Raises:
        InputError: one that was asked for does not fit, or none does.
    """
    if not isinstance(plan, Replay):
        return tuple(names)
    sizes = {one.name: len(one.ranks) for one in find_communicators(topology, names)}
    fit = tuple(name for name, size in sizes.items() if size == plan.ranks)
    if not fit or (asked and len(fit) < len(sizes)):
        other = ", ".join(f"{name} ({size})" for name, size in sizes.items() if name not in fit)
        raise InputError(
            f"{plan.site} was recorded on {plan.ranks} ranks, and these communicators have others: "
            f"{other}; give --communicators with {plan.ranks} ranks"
        )
    return fit
