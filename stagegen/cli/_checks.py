"""Checks of options that click does not have."""

from __future__ import annotations

import math
from typing import Any

import click
from click.core import ParameterSource


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN, which is in every range by comparison, and infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; anything else is a usage error."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def require_with(parameter: str, other: str, given: object) -> None:
    """Refuse an option that has no effect without another one.

    Args:
        parameter: the name of the option's value in the running command.
        other: the option that is needed.
        given: its value.

    Raises:
        click.UsageError: the option was given, and the other one was not.
    """
    context = click.get_current_context()
    if not given and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
        option = next(one.opts[0] for one in context.command.params if one.name == parameter)
        raise click.UsageError(f"{option} needs {other}")
