"""The ``--sizes`` option: a range ``1:256KiB`` of the usual grid, or a list ``1,64,8KiB``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from stagegen.catalogue import Collective
from stagegen.errors import InputError
from stagegen.topology import parse_size
from stagegen.tune.candidates import INT_MOST
from stagegen.tune.scope import grid

_Command = TypeVar("_Command", bound=Callable[..., Any])


def parse_sizes(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, ...]:
    """Return sizes in bytes, ascending; anything else is a usage error."""
    try:
        if ":" in text:
            low, high = text.split(":")
            return grid(*_served([parse_size(low), parse_size(high)]))
        sizes = {parse_size(item) for item in text.split(",")}
        if min(sizes) < 1:
            raise click.BadParameter("every size must be at least 1 byte")
        return _served(sorted(sizes))
    except (ValueError, InputError) as error:
        raise click.BadParameter(f"{error}; expected FROM:TO or A,B,… such as 1:256KiB") from error


def _served(sizes: Sequence[int]) -> tuple[int, ...]:
    if max(sizes) > INT_MOST:
        raise click.BadParameter("the library leaves calls of 2 GiB and more to the MPI library")
    return tuple(sizes)


def sizes_option(default: str | None = None) -> Callable[[_Command], _Command]:
    """Return a decorator that adds ``--sizes``, which must be given if there is no default."""
    # A default of None would count as a size that was given.
    needed = {"required": True} if default is None else {"default": default, "show_default": True}
    return click.option(
        "--sizes",
        callback=parse_sizes,
        **needed,
        help="Message sizes: FROM:TO (1, 64, 512, 1Ki, 2Ki, …) or a list A,B,….",
    )


def timed(collective: Collective, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes at which a collective is timed: for a barrier, only 0."""
    return sizes if collective.has_data else (0,)
