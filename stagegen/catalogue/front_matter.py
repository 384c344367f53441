"""The front matter of a template: YAML in its leading Jinja comment, checked key by key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from stagegen.catalogue.algorithm import (
    CONSTRAINTS,
    PARTS_MOST,
    PLACES,
    SCHEDULES,
    Algorithm,
    Parameter,
    Part,
)
from stagegen.catalogue.formula import read_formula
from stagegen.errors import InputError

_LEADING_COMMENT = re.compile(r"\A\{#---\n(?P<yaml>.*?)\n---#\}\n", re.DOTALL)
_MEMBER = re.compile(r"\.(\w+) = ")
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_SIZES = ("n", "p", "e")
_USED = re.compile(r"[a-z0-9_]+/[a-z][a-z0-9_]*\Z")


def read_algorithm(path: Path, root: Path) -> Algorithm:
    """Read one algorithm from ``path``, a template below the folder ``root``.

    Raises:
        InputError: the front matter is missing, is not YAML, or has unknown keys or values.
    """
    text = path.read_text(encoding="utf-8")
    values = _Values(_parse(text, path), path, text)
    parameters = values.take("parameters", _parameters, default=())
    names = [parameter.name for parameter in parameters]
    algorithm = Algorithm(
        collective=path.parent.name,
        name=path.name.removesuffix(".c.j2"),
        summary=values.take("summary", _text),
        wins=values.take("wins", _text, default=""),
        example=values.take("example", _text, default=""),
        parameters=parameters,
        constraints=values.take("constraints", _subset(CONSTRAINTS), default=()),
        needs=values.take("needs", _one_of((*SCHEDULES, *PLACES)), default=None),
        kind=values.take("kind", _text, default=None),
        max_ranks=values.take("max_ranks", _natural, default=None),
        min_bytes=values.take("min_bytes", _natural, default=0),
        max_bytes=values.take("max_bytes", _natural, default=None),
        cost=values.take("cost", _text),
        reference=values.take("reference", _text),
        template=path.relative_to(root),
        deterministic=values.take("deterministic", _truth, default=False),
        uses=values.take("uses", _algorithms, default=()),
        parts=values.take("parts", _parts, default=()),
        scratch=values.take("scratch", lambda value: read_formula(value, names)),
    )
    values.done()
    if not _NAME.match(algorithm.name):
        raise InputError("an algorithm's file is named [a-z][a-z0-9_]*.c.j2", path)
    if "dense" in algorithm.constraints and not _packs(path.parent):
        message = f"`dense`: {algorithm.collective}/_call.c.j2 has no pack and unpack for it"
        raise InputError(message, path, values.line("constraints"))
    if algorithm.parts and (algorithm.parameters or algorithm.uses or algorithm.needs):
        message = "`parts`: a composition has no parameters, uses or needs of its own"
        raise InputError(message, path, values.line("parts"))
    kinds = SCHEDULES.get(algorithm.needs or "", (None,))
    if algorithm.kind not in kinds:
        listed = ", ".join(map(str, kinds)) if algorithm.has_tables else "nothing without tables"
        raise InputError(f"`kind` is {algorithm.kind}, but has to be {listed}", path, 1)
    return algorithm


def _packs(collective: Path) -> bool:
    """Whether a collective can pack its calls into plain bytes for routines that ask for it."""
    call = collective / "_call.c.j2"
    return call.is_file() and {"pack", "unpack"} <= set(_MEMBER.findall(call.read_text("utf-8")))


def _parse(text: str, path: Path) -> Mapping[str, Any]:
    match = _LEADING_COMMENT.match(text)
    if match is None:
        raise InputError("the front matter is missing: begin with a {#--- … ---#} comment", path, 1)
    try:
        values = yaml.safe_load(match["yaml"])
    except yaml.MarkedYAMLError as error:
        line = 2 + (error.problem_mark.line if error.problem_mark else 0)
        raise InputError(f"the front matter is not YAML: {error.problem}", path, line) from error
    if not isinstance(values, dict):
        raise InputError("the front matter must be a mapping of keys", path, 2)
    return values


class _Values:
    """Takes known keys out of the front matter and rejects the rest."""

    def __init__(self, values: Mapping[str, Any], path: Path, text: str):
        self._values = dict(values)
        self._path = path
        self._lines = text.splitlines()

    def take(self, key: str, convert: Callable[[Any], Any], **default: Any) -> Any:
        if key not in self._values:
            if "default" in default:
                return default["default"]
            raise InputError(f"the front matter lacks `{key}`", self._path, 1)
        try:
            return convert(self._values.pop(key))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"the front matter's `{key}`: {error}"
            raise InputError(message, self._path, self.line(key)) from error

    def done(self) -> None:
        if self._values:
            unknown = ", ".join(map(str, self._values))
            line = self.line(next(iter(self._values)))
            raise InputError(f"unknown in the front matter: {unknown}", self._path, line)

    def line(self, key: str) -> int:
        """Return the line that begins with a key."""
        return next((n for n, line in enumerate(self._lines, 1) if line.startswith(f"{key}:")), 1)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a text")
    return value.strip()


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def _natural(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("expected a number, 0 or more")
    return value


def _one_of(known: tuple[str, ...]) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return str(value)

    return convert


def _subset(known: Mapping[str, str]) -> Callable[[Any], tuple[str, ...]]:
    def convert(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not set(value) <= set(known):
            raise ValueError(f"expected a list of {', '.join(known)}")
        return tuple(sorted(value))

    return convert


def _algorithms(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(_USED.match(str(name)) for name in value):
        raise ValueError("expected a list of collective/algorithm")
    return tuple(value)


def _parts(value: Any) -> tuple[Part, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= PARTS_MOST:
        raise ValueError(f"expected 1 to {PARTS_MOST} entries `collective: formula of its size`")
    return tuple(
        Part(str(name), read_formula(size, (), _SIZES))
        for one in value
        for name, size in one.items()
    )


def _parameters(value: Any) -> tuple[Parameter, ...]:
    return tuple(_parameter(name, entry) for name, entry in value.items())


def _parameter(name: str, entry: Any) -> Parameter:
    if set(entry) != {"meaning", "values", "default"}:
        raise ValueError(f"`{name}` needs meaning, values and default, and nothing else")
    values = tuple(_natural(number) for number in entry["values"])
    if not _NAME.match(name) or not values or sorted(set(values)) != list(values):
        raise ValueError(f"`{name}` needs a name [a-z][a-z0-9_]* and ascending values")
    if entry["default"] not in values:
        raise ValueError(f"the default of `{name}` is not one of its values")
    return Parameter(name, _text(entry["meaning"]), values, entry["default"])
