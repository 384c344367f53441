"""Plans of ranks that come late: ``imbalance:16``, ``replay:FILE#SITE``, ``replay:15=2ms``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from stagegen.errors import InputError
from stagegen.measure.arrivals import Arrivals, Imbalance, Replay
from stagegen.measure.timing import LATE
from stagegen.recording import arrival_patterns, read
from stagegen.topology import Topology, load_topology, parse_latency
from stagegen.tune.communicators import find_communicators

#: The mechanisms that have a plan.
PLANS = LATE


def read_plan(text: str, topology_file: str | None = None) -> Arrivals:
    """Return the plan of ``imbalance:MAX``, ``replay:FILE#SITE`` or ``replay:RANK=TIME,…``.

    Args:
        text: the plan.
        topology_file: of the cluster, whose ranks come late.

    Raises:
        click.BadParameter: it is none of these, or MAX is wrong; says what to give.
        InputError: the file is no recording, or has no such site; says which there are.
    """
    name, _, rest = text.partition(":")
    if name == "imbalance":
        try:
            return Imbalance.parse(rest)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    if not rest:
        raise click.BadParameter(
            "replay needs a recording or late ranks: give replay:FILE#SITE or replay:RANK=TIME,…"
        )
    if topology_file is not None and (late := late_ranks(rest)):
        return _fixed(rest, late, load_topology(topology_file).rank_count)
    return _replay(rest)


def _replay(text: str) -> Replay:
    """Return the plan of ``FILE``, ``FILE#SITE``, ``FILE#SITE/SIZE`` or ``FILE#SITE/SIZE/RANKS``.

    Calls of a site of one size, on different communicators with as many ranks, are one plan.

    Raises:
        InputError: the file is no recording, or it is not clear which calls are meant; lists them.
    """
    name, _, site = (text, "", "") if Path(text).exists() else text.rpartition("#")
    path = Path(name or site)
    if not path.exists():
        raise InputError("there is no such file; make a recording with `stagegen record`", path)
    found: dict[str, list[tuple[float, ...]]] = {}
    patterns = arrival_patterns(read(path))
    for pattern in patterns:
        full = f"{pattern.site}/{pattern.size}/{len(pattern.ranks)}"
        found.setdefault(full, []).extend(pattern.offsets)
    wanted = site if name else ""
    fit = [full for full in found if not wanted or f"{full}/".startswith(f"{wanted}/")]
    if len(fit) != 1:
        listed = ", ".join(f"{one} ({len(found[one])} calls)" for one in (fit or found))
        what = "has no calls of several ranks" if not found else (
            f"has several kinds of calls that could be meant: {listed}" if fit
            else f"has no calls of {wanted}; it has {listed}"
        )  # fmt: skip
        raise InputError(f"{what}; name one as SITE/SIZE/RANKS after #", path)
    return Replay.of(fit[0], found[fit[0]], patterns[0].clock_error)


def late_ranks(text: str) -> dict[int, float]:
    """Return how many seconds each named rank is late; nothing if the text is not RANK=TIME,…."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(rank.isascii() and rank.isdigit() and equals for rank, equals, _ in pairs):
        return {}
    try:
        return {int(rank): parse_latency(time) for rank, _, time in pairs}
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _fixed(text: str, late: Mapping[int, float], count: int) -> Replay:
    """Return the plan in which some of `count` ranks are late, in every call by the same time."""
    if max(late) >= count:
        raise click.BadParameter(f"there is no rank {max(late)}; the last one is {count - 1}")
    if len(late) == count:
        raise click.BadParameter("all ranks are late; leave out those that the others wait for")
    return Replay.of(f"ranks {text}", [[late.get(rank, 0.0) for rank in range(count)]])


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
