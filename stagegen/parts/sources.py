"""Named parts with the places that they come from: what a file names, and what packages bring."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from stagegen.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Named(Generic[T]):
    """A part, or what makes it.

    Attributes:
        name: of the part.
        value: the part.
        where: where it is named: a file with its line, or a package.
    """

    name: str
    value: T
    where: str


@dataclass(frozen=True)
class Run:
    """A generator that is to run.

    Attributes:
        function: ``FILE.py:NAME`` of a folder; None if a package has a generator of that name.
        description: its description, or None.
    """

    function: Callable[..., object] | None
    description: Path | None


@dataclass(frozen=True)
class Sources:
    """What one source, a file or the packages, brings.

    Attributes:
        templates: folders of templates.
        generators: functions that may be run, of packages.
        runs: generators that a file asks for.
        timings: C files.
        launchers: what makes a launcher.
    """

    templates: tuple[Named[Path], ...] = ()
    generators: tuple[Named[Callable[..., object]], ...] = ()
    runs: tuple[Named[Run], ...] = ()
    timings: tuple[Named[Path], ...] = ()
    launchers: tuple[Named[Callable[..., object]], ...] = ()


@dataclass(frozen=True)
class FileSources:
    """What ``stagegen.yaml`` says.

    Attributes:
        sources: the parts that it names.
        packages: names of the packages whose parts count; None: all.
    """

    sources: Sources = field(default_factory=Sources)
    packages: frozenset[str] | None = None


def by_name(parts: Iterable[Named[T]], what: str) -> Mapping[str, Named[T]]:
    """Return parts by their names.

    Raises:
        InputError: two have the same name; the message says where both are named.
    """
    found: dict[str, Named[T]] = {}
    for one in parts:
        other = found.setdefault(one.name, one)
        if other is not one:
            raise InputError(
                f"there is already a {what} named {one.name}, of {other.where}; rename one of them",
                one.where,
            )
    return found


def function_of(file: Path, name: str) -> Callable[..., object]:
    """Return a function, or a class, that a Python file defines.

    Raises:
        ValueError: the file cannot be loaded, or does not define it.
    """
    module = _module_of(file)
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]  # callable() leaves it Any
    raise ValueError(f"{file} defines no function {name}")


def _module_of(file: Path) -> ModuleType:
    """Load a Python file as a module of its own."""
    name = f"stagegen_part {file.resolve()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ValueError(f"there is no Python file {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module here
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    return module
