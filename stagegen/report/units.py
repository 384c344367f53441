"""Sizes and times as people read them."""

from __future__ import annotations

_BYTE_UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"))
_SECOND_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def format_bytes(size: int) -> str:
    """Return a size such as ``64 KiB``; in bytes where it is no whole number of a unit."""
    for factor, unit in _BYTE_UNITS:
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def format_seconds(seconds: float) -> str:
    """Return a time with three digits, such as ``12.3 ms``; it may be below 0."""
    if seconds < 0:
        return f"−{format_seconds(-seconds)}"
    rounded = float(f"{seconds:.3g}")  # 999.9 µs are 1 ms
    for factor, unit in _SECOND_UNITS:
        if rounded >= factor:
            return f"{rounded / factor:g} {unit}"
    return f"{rounded / 1e-9:g} ns"
