"""Options and text of a tree, for the commands for broadcast and reduce."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from stagegen.schedule import TREE_CONSTRUCTIONS, Tree

_Command = TypeVar("_Command", bound=Callable[..., Any])


def tree_options(command: _Command) -> _Command:
    """Add `--root`, `--tree` and `--arity`."""
    options = (
        click.option("--root", type=int, default=0, show_default=True, help="The tree's root."),
        click.option(
            "--tree",
            type=click.Choice(TREE_CONSTRUCTIONS),
            default="linear",
            show_default=True,
            help="The tree; binomial and flat ignore the network.",
        ),
        click.option("--arity", type=int, help="The most children in a kary tree; default: 3."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def tree_text(tree: Tree) -> Iterator[str]:
    """Yield the lines for people."""
    head = f"{tree.collective}: tree {tree.construction} {_END[tree.collective]} rank {tree.root}"
    least = "" if tree.least_height is None else f" (none is lower than {tree.least_height})"
    yield f"{head}, height {tree.height}{least}"
    if tree.contention:
        (one, other), ranks = tree.contention[0]
        yield (
            f"contention: {len(tree.contention)} edges have several {tree.peers}, at most "
            f"{ranks} (on {one}→{other}); in one step at most {tree.in_step}"
        )
    yield from (f"  {edge}" for edge in tree.edges)


_END = {"bcast": "from", "reduce": "to"}
