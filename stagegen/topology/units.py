"""Quantities of a topology file and of the command line: rates, times and sizes.

Every parser takes a text and returns a number in the base unit (bit/s, s, byte). For a text that
it cannot read, it raises a ``ValueError`` whose message says what to write. Decimal arithmetic
keeps `0.1Gbit` exact.
"""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"({_NUMBER})\s*([A-Za-zµμ/]*)", re.ASCII)

_RATE_PREFIXES = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}
_RATE_ENDINGS = ("bit", "bit/s", "bitps", "bps")
_RATES = {
    prefix + ending: Decimal(10) ** power
    for prefix, power in _RATE_PREFIXES.items()
    for ending in _RATE_ENDINGS
} | {"": Decimal(1)}

_TIMES = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
}

_SIZE_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3}
_SIZES = {
    prefix + ending: Decimal(1024) ** power
    for prefix, power in _SIZE_PREFIXES.items()
    for ending in ("", "b", "ib")
}
del _SIZES["ib"]

RATE_MOST = 10**15
"""The fastest that a link may be, in bit/s: generated C counts bits by 64-bit numbers."""
_POWERS_MOST = 30
"""Numbers above 10 to this power, or below its inverse, are taken for mistakes."""

_RATE_HELP = "write a number and bit, kbit, Mbit, Gbit or Tbit, such as 100Mbit"
_TIME_HELP = "write a number and ns, us, ms or s, such as 50us"
_SIZE_HELP = "write bytes, or a number and KiB, MiB or GiB, such as 64KiB"


def _split(text: str, what: str, hint: str) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no {what}; {hint}")
    exponent = re.search(r"[eE]([+-]?\d+)", match[1])
    if not (exponent and abs(int(exponent[1])) > _POWERS_MOST):
        number = Decimal(match[1])
        if number == 0 or abs(number.adjusted()) <= _POWERS_MOST:
            return number, match[2]
    raise ValueError(f"{text!r} is out of range for a {what}; {hint}")


def parse_bandwidth(text: str) -> int:
    """Return a rate in bit/s.

    Args:
        text: a number with a unit of `bit kbit Mbit Gbit Tbit`, each also with `/s` or as
            `bps`; case does not matter but for `Bps`, which is bytes; a bare number is bit/s.

    Raises:
        ValueError: not a rate, in bytes, below 1 bit/s, or above `RATE_MOST`.
    """
    number, unit = _split(text, "bandwidth", _RATE_HELP)
    if unit.endswith("Bps"):
        raise ValueError(f"{text!r} is in bytes per second; {_RATE_HELP}")
    factor = _RATES.get(unit.lower())
    if factor is None:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}; {_RATE_HELP}")
    rate = number * factor
    if rate < 1:
        raise ValueError(f"bandwidth {text!r} is not positive; {_RATE_HELP}")
    if rate > RATE_MOST:
        most = format_bandwidth(RATE_MOST)
        raise ValueError(f"bandwidth {text!r} is more than {most}; {_RATE_HELP}")
    return round(rate)


def parse_latency(text: str) -> float:
    """Return a time in seconds.

    Args:
        text: a number with the unit ns, us, ms or s; only 0 needs no unit.

    Raises:
        ValueError: not a time, or negative.
    """
    number, unit = _split(text, "latency", _TIME_HELP)
    if number < 0:
        raise ValueError(f"latency {text!r} is negative; {_TIME_HELP}")
    if not unit and number == 0:
        return 0.0
    factor = _TIMES.get(unit)
    if factor is None:
        problem = f"has the unknown unit {unit!r}" if unit else "has no unit"
        raise ValueError(f"{text!r} {problem}; {_TIME_HELP}")
    return float(number * factor)


def parse_size(text: str) -> int:
    """Return a size in bytes; K, KB and KiB are all 1,024 bytes, as in the MPI literature.

    Raises:
        ValueError: not a size, negative, or not a whole number of bytes.
    """
    number, unit = _split(text, "size", _SIZE_HELP)
    factor = _SIZES.get(unit.lower())
    if factor is None:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}; {_SIZE_HELP}")
    size = number * factor
    if size < 0 or size != int(size):
        raise ValueError(f"{text!r} is no whole number of bytes; {_SIZE_HELP}")
    return int(size)


def format_bandwidth(rate: int) -> str:
    """Return a rate in the largest unit that keeps it a whole number, such as `100Mbit`."""
    for prefix, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if rate % 10**power == 0:
            return f"{rate // 10**power}{prefix}bit"
    return f"{rate}bit"


def format_latency(seconds: float) -> str:
    """Return a time that :func:`parse_latency` reads back to the same number."""
    exact = Decimal(repr(seconds))
    for unit in ("s", "ms", "us", "ns"):
        number = exact / _TIMES[unit]
        if number == number.to_integral_value():
            return f"{int(number)}{unit}"
    return f"{exact / _TIMES['ns']}ns"
