"""The options of the protocol: launches, width of intervals, least gain, seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stagegen.cli._checks import FiniteRange
from stagegen.tune.protocol import Protocol

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT = Protocol()


def protocol_options(command: F) -> F:
    """Add the options; a command gets ``launches``, ``width``, ``gain`` and ``seed``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--launches",
        type=click.IntRange(1, 100),
        default=_DEFAULT.launches,
        show_default=True,
        help="Launches of the job that decide, after one that scouts.",
    ),
    click.option(
        "--width",
        type=FiniteRange(0, 1, min_open=True),
        default=_DEFAULT.width,
        show_default=True,
        help="Repeat until the 95 % interval of a median is within this share of it.",
    ),
    click.option(
        "--gain",
        type=FiniteRange(0, 1, max_open=True),
        default=_DEFAULT.gain,
        show_default=True,
        help="The least share by which a routine must be faster than what it replaces.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=_DEFAULT.seed,
        show_default=True,
        help="Seed of the random order in which routines take turns.",
    ),
)
