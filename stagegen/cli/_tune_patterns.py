"""Patterns to tune for: those of a file whose ranks are the cluster's, or those of a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from stagegen.catalogue.templates import Root
from stagegen.errors import InputError
from stagegen.generate.pattern_templates import pattern_root
from stagegen.patterns import Pattern, is_typical, read_patterns, typical_calls
from stagegen.patterns.model import DEFAULT_SCALES
from stagegen.topology import WHOLE, Topology
from stagegen.tune.communicators import ranks_of_groups


def to_standard_error(text: str) -> None:
    """Print a note where there is no display."""
    click.echo(text, err=True)


#: The collectives whose patterns are tuned for.
TUNED = ("allgatherv", "alltoallv")
#: The value of --communicators that means only those of the patterns.
ALONE = "patterns"

patterns_option = click.option(
    "--patterns",
    "pattern_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also tune for the patterns of a file of `stagegen patterns`, of all ranks or of a group. "
    "Each alltoallv gets routines of its own, unless it is a class. With --communicators patterns, "
    "tune for nothing else.",
)


classes_option = click.option(
    "--classes",
    "has_classes",
    is_flag=True,
    help="Also tune alltoallv and allgatherv by classes of calls: the largest block over the mean "
    "of all, and the mean. Without it, one rule serves all calls of alltoallv that have no "
    "pattern. With --communicators patterns, tune for nothing else.",
)


def _read_scales(_context: object, _parameter: object, text: str) -> tuple[float, ...]:
    try:
        found = tuple(sorted({float(item) for item in text.split(",")}))
    except ValueError:
        found = ()
    if not found or not 0 < found[0] <= found[-1] < math.inf:
        raise click.BadParameter(f"{text!r} is not a list of numbers above 0, such as 0.25,1,4")
    return found


scales_option = click.option(
    "--scales",
    callback=_read_scales,
    default="0.25,1,4",
    show_default=True,
    metavar="A,B",
    help="With --patterns: factors by which the blocks of the file are made longer or shorter, "
    "unless a pattern of the file has its own.",
)


def patterns_of(
    file: Path | None,
    topology: Topology,
    *,
    has_classes: bool = False,
    say: Callable[[str], None] = to_standard_error,
) -> tuple[Pattern, ...]:
    """Return the patterns of a file that can be tuned for; say which others are left out.

    With classes, typical calls come after them.

    Raises:
        InputError: the file is wrong, or has no such pattern; a pattern has the name of a typical
            call; or there are too many ranks for these.
    """
    own = _patterns_in(file, topology, say)
    if taken := [one.name for one in own if is_typical(one)]:
        problem = f"{taken[0]!r} is the name of a pattern of --classes; rename the file's"
        raise InputError(problem, file)
    return (*own, *(typical_calls(topology.rank_count) if has_classes else ()))


def _patterns_in(
    file: Path | None, topology: Topology, say: Callable[[str], None]
) -> tuple[Pattern, ...]:
    if file is None:
        return ()
    groups = ranks_of_groups(topology)
    all_of_them = [one.in_world_order for one in read_patterns(file)]
    found = tuple(
        replace(one, group=None if group == WHOLE else group)
        for one in all_of_them
        if one.collective in TUNED and one.total > 0
        for group in _groups_with(one, groups)
    )
    if not found:
        raise InputError(f"it has no pattern to tune for. {_asked(topology)}", file)
    names = {one.name for one in found}
    if left := ", ".join(one.name for one in all_of_them if one.name not in names):
        say(f"{file}: left out: {left}. {_asked(topology)}")
    return found


def _groups_with(pattern: Pattern, groups: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the one group whose ranks have a pattern, or none.

    A pattern of as many ranks as the cluster is of all of them. For other patterns, the
    communicator says which group has them.
    """
    return [
        name
        for name, ranks in groups.items()
        if pattern.ranks == len(ranks) and (name == WHOLE or pattern.communicator == tuple(ranks))
    ]


def _asked(topology: Topology) -> str:
    """Say what patterns are tuned for."""
    return (
        "Tuning is for each alltoallv and allgatherv with data that has all "
        f"{topology.rank_count} ranks of the cluster, or whose `communicator:` has exactly the "
        "ranks of a group in the topology file"
    )


def communicators_asked(names: str | None, patterns: Sequence[Pattern]) -> tuple[str | None, bool]:
    """Return the communicators that are asked for, and whether patterns alone are.

    Raises:
        click.UsageError: patterns alone are asked for, and there are none.
    """
    if names != ALONE:
        return names, False
    if not patterns:
        raise click.UsageError(f"--communicators {ALONE} asks for --patterns FILE or --classes")
    return None, True


def roots_of(
    file: Path | None,
    patterns: Sequence[Pattern],
    topology: Topology,
    scales: Sequence[float] = DEFAULT_SCALES,
    say: Callable[[str], None] = to_standard_error,
) -> tuple[Root, ...]:
    """Return the templates of the patterns' routines; say which orders have none.

    ``scales`` are the factors for patterns without scales of their own.

    Raises:
        InputError: a block is too long, or two names become one.
        ScheduleError: a schedule fails its proof.
    """
    ordered = [one for one in patterns if one.has_order]
    if not ordered:
        return ()

    def say_of_file(text: str) -> None:
        say(f"{file}: {text}")

    return (pattern_root(topology, ordered, str(file), say_of_file, scales),)
