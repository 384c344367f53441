"""Finds the parts of installed Python packages, by their entry points (docs/extend.md)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from stagegen.errors import InputError
from stagegen.parts.sources import Named, Sources

#: The groups of entry points, each with what its entries are. Launchers have a group of their own
#: (:mod:`stagegen.measure.launch.registry`).
TEMPLATES, GENERATORS, TIMINGS = (
    f"stagegen.{part}" for part in ("templates", "generators", "timings")
)


def installed_parts(packages: frozenset[str] | None) -> Sources:
    """Return the parts of the installed packages, in the order of their names.

    Args:
        packages: names of the packages that count; None: all.

    Raises:
        InputError: an entry point cannot be loaded, or is something else than it has to be.
    """
    return Sources(
        templates=tuple(_load(one, _folder) for one in _points(TEMPLATES, packages)),
        generators=tuple(_load(one, _callable) for one in _points(GENERATORS, packages)),
        timings=tuple(_load(one, _file) for one in _points(TIMINGS, packages)),
    )


def _points(group: str, packages: frozenset[str] | None) -> list[EntryPoint]:
    found = entry_points(group=group)
    wanted = (one for one in found if packages is None or _package(one) in packages)
    return sorted(wanted, key=lambda one: (one.name, _package(one)))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "?"


def _load(point: EntryPoint, convert: Callable[[Any], Any]) -> Named[Any]:
    """Load an entry point.

    Raises:
        InputError: it cannot be loaded, or is something else than it has to be.
    """
    where = f"package {_package(point)}, {point.group}: {point.name} = {point.value}"
    try:
        return Named(point.name, convert(point.load()), where)
    except Exception as error:  # whatever a package raises when it is imported
        raise InputError(f"cannot be loaded: {type(error).__name__}: {error}", where) from error


def _folder(value: Any) -> Path:
    path = Path(value)
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}")
    return path


def _file(value: Any) -> Path:
    path = Path(value)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _callable(value: Any) -> Callable[..., object]:
    if not callable(value):
        raise TypeError(f"{value!r} cannot be called")
    return value  # type: ignore[no-any-return]  # callable() leaves it Any
