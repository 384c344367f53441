"""Colours that people with any colour vision can tell apart, on white."""

from __future__ import annotations

INK = "#1a1a1a"
SOFT = "#6b7280"
LINE = "#c3c9d2"
EMPTY = "#f0f2f5"
ALARM = "#c2410c"
"""For contention and bottlenecks; the only colour that means something by itself."""

GROUPS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#8c564b",
    "#b8a900",
    "#4b4f58",
)
"""For switches; after M. Okabe and K. Ito, *Color Universal Design* (2008)."""

# Five points of the map cividis (Nuñez, Anderton, Renslow, 2018) without its lightest end.
_SCALE = ((0, 34, 78), (58, 76, 107), (114, 115, 122), (165, 154, 113), (221, 197, 86))
_FULL = (16, 60, 110)
_NONE = (240, 242, 245)

Colour = tuple[float, float, float]


def _mix(one: tuple[int, int, int], other: tuple[int, int, int], share: float) -> Colour:
    red, green, blue = ((a + (b - a) * share) / 255 for a, b in zip(one, other, strict=True))
    return red, green, blue


def scale(value: int, low: int, high: int) -> Colour:
    """Return a colour from dark blue (low) to yellow (high)."""
    place = (value - low) / (high - low) * (len(_SCALE) - 1) if high > low else 0.0
    index = min(int(place), len(_SCALE) - 2)
    return _mix(_SCALE[index], _SCALE[index + 1], place - index)


def shade(share: float) -> Colour:
    """Return a blue as strong as a share of 0 to 1."""
    return _mix(_NONE, _FULL, max(0.0, min(1.0, share)))


def is_dark(colour: str | Colour) -> bool:
    """Tell whether white text is readable on a colour (luma of ITU-R BT.601)."""
    parts = (
        [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] if isinstance(colour, str) else colour
    )
    return sum(w * part for w, part in zip((0.299, 0.587, 0.114), parts, strict=True)) < 0.6
