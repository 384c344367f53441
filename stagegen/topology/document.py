"""Reads YAML so that every error message can name the line.

It uses PyYAML's node graph instead of its objects: nodes know their line, and keep names that
plain YAML would turn into numbers or booleans.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import yaml

from stagegen.errors import InputError

_Value = TypeVar("_Value")

_FORMS = {
    yaml.MappingNode: "a mapping",
    yaml.SequenceNode: "a list",
    yaml.ScalarNode: "a single value",
}
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


#: Characters of a word that is compared with known ones: the time grows with their square.
_WORD_MOST = 256
#: Digits of a count, leading zeros included: Python refuses to read very long numbers.
_DIGITS_MOST = 20
#: Characters of a message; a file may have values of any length.
_MESSAGE_MOST = 600


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, else a list of the known words unless it is long."""
    known = list(known)
    close = difflib.get_close_matches(word[:_WORD_MOST], known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; expected {', '.join(known)}" if 0 < len(known) <= 10 else ""


@dataclass(frozen=True)
class Document:
    """One YAML file: turns nodes into checked values; its errors name the file and the line."""

    path: Path

    def fail(self, node: yaml.Node | int, message: str) -> NoReturn:
        """Raise an input error at a node, or at a line counted from 1."""
        line = node if isinstance(node, int) else node.start_mark.line + 1
        raise InputError(_plain(message), self.path, line)

    def mapping(self, node: yaml.Node, what: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return key → (key node, value node) in file order; no key may occur twice."""
        if not isinstance(node, yaml.MappingNode):
            self.fail(node, f"{what} must be a mapping (key: value), not {_FORMS[type(node)]}")
        found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            name = self.text(key, f"a key of {what}")
            if name in found:
                first = found[name][0].start_mark.line + 1
                self.fail(key, f"{name!r} is already given on line {first}; keep one of them")
            found[name] = (key, value)
        return found

    def known_keys(
        self, node: yaml.Node, what: str, known: Iterable[str], required: Iterable[str] = ()
    ) -> dict[str, yaml.Node]:
        """Return key → value node of a mapping that may hold only known keys."""
        found = self.mapping(node, what)
        for name, (key, _) in found.items():
            if name not in known:
                self.fail(key, f"unknown key {name!r} in {what}{did_you_mean(name, known)}")
        for name in required:
            if name not in found:
                self.fail(node, f"{what} has no {name!r}; add it")
        return {name: value for name, (_, value) in found.items()}

    def items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """Return the entries of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.fail(node, f"{what} must be a list ([a, b]), not {_FORMS[type(node)]}")
        return list(node.value)

    def scalar(self, node: yaml.Node, what: str) -> str:
        """Return a single value as the file spells it."""
        if not isinstance(node, yaml.ScalarNode) or self.is_null(node):
            found = "empty" if self.is_null(node) else f"not {_FORMS[type(node)]}"
            self.fail(node, f"{what} must be a single value, {found}")
        return str(node.value)

    def text(self, node: yaml.Node, what: str) -> str:
        """Return a single value that YAML reads as text."""
        value = self.scalar(node, what)
        if node.tag == "tag:yaml.org,2002:merge":
            self.fail(node, f"{what} is {value}, which merges mappings; write its keys out")
        if node.tag != "tag:yaml.org,2002:str":
            self.fail(node, f'{what} is {value}, which is not text in YAML; write "{value}"')
        return value

    def name(self, node: yaml.Node, what: str) -> str:
        """Return the name of a switch or host: letters, digits, and `.`, `_`, `-` inside."""
        return self.checked_name(node, self.text(node, what), what)

    def checked_name(self, node: yaml.Node, value: str, what: str) -> str:
        """Return `value` if it can be a name, else fail at the node."""
        if not _NAME.fullmatch(value):
            self.fail(node, f"{what} {value!r} must consist of letters, digits, '.', '_' and '-'")
        return value

    def count(self, node: yaml.Node, what: str, most: int = 999_999_999) -> int:
        """Return a whole number from 1 to `most`."""
        value = self.scalar(node, what)
        if not re.fullmatch(r"0*[1-9][0-9]*", value):
            self.fail(node, f"{what} must be a whole number of at least 1, not {value!r}")
        if len(value) > _DIGITS_MOST or int(value) > most:
            self.fail(node, f"{what} must be at most {most:,}, not {value}")
        return int(value)

    def parsed(self, node: yaml.Node, what: str, parse: Callable[[str], _Value]) -> _Value:
        """Return a single value as `parse` reads it; a ValueError becomes an input error."""
        value = self.scalar(node, what)
        try:
            return parse(value)
        except ValueError as error:
            self.fail(node, str(error))

    @staticmethod
    def is_null(node: yaml.Node) -> bool:
        """Tell whether the value is empty."""
        return node.tag == "tag:yaml.org,2002:null"


def _plain(message: str) -> str:
    """Return a message on one line, with escapes for what cannot be printed, and cut if long."""
    if len(message) > _MESSAGE_MOST:
        half = _MESSAGE_MOST // 2
        message = f"{message[:half]} … {message[-half:]}"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)


def read_text(path: Path) -> str:
    """Return a UTF-8 file's text.

    Raises:
        InputError: it cannot be read, or is not UTF-8 (with the line).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror or error}", path) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not UTF-8 text; save the file as UTF-8", path, line) from error


def read_document(path: Path, least: str = "name and switches") -> yaml.Node:
    """Return the root node of a YAML file, which needs at least some keys.

    Raises:
        InputError: the file cannot be read, is not YAML, or holds nothing.
    """
    text = read_text(path)
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        place = text.count("\n", 0, error.position) + 1
        raise InputError("a control character; remove it", path, place) from error
    try:
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        problem = ", ".join(filter(None, (error.context, error.problem))) or "not YAML"
        if r"'\t'" in problem:
            problem = "a tab where YAML wants spaces; indent with spaces"
        raise InputError(_plain(problem), path, line) from error
    except RecursionError as error:
        raise InputError("nested too deeply", path, 1) from error
    except (ValueError, OverflowError) as error:  # an escape such as "\\UFFFFFFFF"
        place = loader.get_mark().line + 1
        raise InputError("an escape for a character that does not exist", path, place) from error
    if root is None:
        raise InputError(f"the file is empty; it needs at least {least}", path, 1)
    return root
