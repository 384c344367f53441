"""Keys of YAML, taken one by one: what is wrong is told with its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from stagegen.errors import InputError

#: The one of libyaml, where PyYAML has it: a hundred files are to be read, and it is ten times as
#: fast.
_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _loaded(text: str) -> Any:
    """Read YAML; PyYAML's own reader says what is wrong, as libyaml gives other lines."""
    try:
        return yaml.load(text, _FAST_LOADER)
    except yaml.MarkedYAMLError:
        return yaml.safe_load(text)


def read_mapping(text: str, what: str, path: str, first: int = 1) -> Mapping[str, Any]:
    """Return the mapping that a text of YAML holds.

    Args:
        text: the YAML.
        what: its name in messages.
        path: the file, as messages call it.
        first: the line of the file in which it begins.

    Raises:
        InputError: it is not YAML, or not a mapping.
    """
    try:
        values = _loaded(text)
    except yaml.MarkedYAMLError as error:
        line = first + (error.problem_mark.line if error.problem_mark else 0)
        raise InputError(f"{what} is not YAML: {error.problem}", path, line) from error
    if not isinstance(values, dict):
        raise InputError(f"{what} must be a mapping of keys", path, first)
    return values


class Keys:
    """Takes known keys out of a mapping and rejects the rest.

    Args:
        values: the keys.
        what: the mapping's name in messages.
        path: the file, as messages call it.
        text: its text, in which lines are looked up.
        row: the row of `variants`, if it is one.
    """

    def __init__(self, values: Mapping[str, Any], what: str, path: str, text: str, row: str = ""):
        self._values = dict(values)
        self._what = what
        self._path = path
        self._lines = text.splitlines()
        self._start = line_of(f"  {row}", self._lines) if row else 1

    def take(self, key: str, convert: Callable[[Any], Any], **default: Any) -> Any:
        """Return a key's value as ``convert`` makes it; without the key the default, if any."""
        if key not in self._values:
            if "default" in default:
                return default["default"]
            raise InputError(f"{self._what} lacks `{key}`", self._path, self._start)
        try:
            return convert(self._values.pop(key))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self.wrong(key, f"{self._what}'s `{key}`: {error}") from error

    def done(self) -> None:
        """Raise InputError if there are keys that were not taken."""
        if self._values:
            unknown = ", ".join(map(str, self._values))
            raise self.wrong(next(iter(self._values)), f"unknown in {self._what}: {unknown}")

    def wrong(self, key: str, message: str) -> InputError:
        """Return the error that a key is wrong, with the key's line."""
        return InputError(message, self._path, self.line(key))

    def line(self, key: str) -> int:
        """Return the line of a key: within the row if it has it, else among the common ones."""
        for number, line in enumerate(self._lines[self._start :], self._start + 1):
            if not line.startswith("    "):
                break
            if line.startswith(f"    {key}:"):
                return number
        common = line_of(key, self._lines)
        return common if common > 1 else self._start


def line_of(key: str, lines: list[str]) -> int:
    """Return the number of the line that begins with a key; the first if there is none."""
    return next((n for n, line in enumerate(lines, 1) if line.startswith(f"{key}:")), 1)


def text_of(value: Any) -> str:
    """Return a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a text that is not blank")
    return value.strip()


def one_of(known: tuple[str, ...]) -> Callable[[Any], str]:
    """Return a function that takes one of these texts, and no other value."""

    def convert(value: Any) -> str:
        if value not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return str(value)

    return convert
