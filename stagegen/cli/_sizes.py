"""The ``--sizes`` option: a range ``1:256KiB`` of the usual grid, or a list ``1,64,8KiB``."""

from __future__ import annotations

import click

from stagegen.catalogue import Collective
from stagegen.errors import InputError
from stagegen.topology import parse_size
from stagegen.tune.scope import grid


def parse_sizes(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, ...]:
    """Return sizes in bytes, ascending; anything else is a usage error."""
    try:
        if ":" in text:
            low, high = text.split(":")
            return grid(parse_size(low), parse_size(high))
        sizes = {parse_size(item) for item in text.split(",")}
        if min(sizes) < 1:
            raise click.BadParameter("every size must be at least 1 byte")
        return tuple(sorted(sizes))
    except (ValueError, InputError) as error:
        raise click.BadParameter(f"{error}; expected FROM:TO or A,B,… such as 1:256KiB") from error


def timed(collective: Collective, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes at which a collective is timed: a barrier has none but 0."""
    return sizes if collective.has_data else (0,)
