"""``--budget``: seconds for each size, a duration for the whole tuning, or ``auto``."""

from __future__ import annotations

import re
from dataclasses import dataclass

import click

#: Seconds of measured time for a size after which no repetitions are added.
PER_SIZE = 20.0

#: The default: the whole tuning has the time that :mod:`stagegen.tune.allowance` gives it.
AUTO = "auto"

#: A day: more counts as a mistake, and JSON cannot hold infinity.
MOST = 86_400.0

_UNITS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:s|min|m|h))+")
_ITEM = re.compile(r"(\d+(?:\.\d+)?)(s|min|m|h)")


@dataclass(frozen=True)
class Budget:
    """What may be spent.

    Attributes:
        per_size: seconds of measured time for a size after which no repetitions are added.
        total: seconds for the whole tuning; None for no limit.
        is_auto: whether stagegen chooses the total.
    """

    per_size: float = PER_SIZE
    total: float | None = None
    is_auto: bool = False


def parse_budget(_ctx: click.Context, _param: click.Parameter, text: str) -> Budget:
    """Return the budget that ``20`` (for a size) or ``10m``, ``1h30m`` (in all) stands for."""
    if text == AUTO:
        return Budget(is_auto=True)
    try:
        if _DURATION.fullmatch(text):
            seconds = sum(float(n) * _UNITS[unit] for n, unit in _ITEM.findall(text))
            if not 0 < seconds <= MOST:
                raise click.BadParameter(f"{text} is not above 0 and at most a day")
            return Budget(total=seconds)
        seconds = float(text)
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is neither {AUTO}, nor a number of seconds for each size, nor a duration "
            "such as 10m or 1h30m for the whole tuning"
        ) from None
    if not 0 <= seconds <= MOST:
        raise click.BadParameter(f"{text} is not in the range 0 to {MOST:.0f} seconds")
    return Budget(per_size=seconds)
