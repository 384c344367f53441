"""What a routine reaches of the code that all routines share: the plain C of ``libcoll/``.

The rule, without a compiler: a text reaches each definition that it names, and what that one names
in turn. A definition is something that can change a time or a result: a function's body, a macro,
a variable with its first value, a constant with its value. Declarations, types, includes and
comments are none. A ``static`` name of a C file is known in this file only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from stagegen.catalogue.c_tokens import hash_of, names_in, tokens, without_comments

_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)")
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class Definition:
    """A definition of a C file.

    Attributes:
        name: what it defines.
        file: where it is.
        hash: of its tokens.
        names: that it names, its own one too.
        is_local: whether only its file knows it.
    """

    name: str
    file: str
    hash: str
    names: frozenset[str]
    is_local: bool


class SharedCode:
    """The definitions of C files.

    Args:
        files: the text of each, by its path.
    """

    def __init__(self, files: Mapping[str, str]):
        self._all = [one for path in sorted(files) for one in definitions(path, files[path])]
        self._of_file: dict[str, dict[str, list[int]]] = {}
        self._of_all: dict[str, list[int]] = {}
        for number, one in enumerate(self._all):
            known = self._of_file.setdefault(one.file, {}) if one.is_local else self._of_all
            known.setdefault(one.name, []).append(number)

    def hash_from(self, names: Iterable[str]) -> str:
        """Return the hash of all that is reached from these names, wherever it stands."""
        return hash_of(sorted(self._all[number].hash for number in self._reached(names)))

    def _reached(self, names: Iterable[str]) -> set[int]:
        """Return the numbers of the definitions that are reached from these names."""
        seen: set[int] = set()
        waiting = [number for name in names for number in self._of_all.get(name, ())]
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                waiting += self._next[number]
        return seen

    @cached_property
    def _next(self) -> list[list[int]]:
        """Of each definition those that it names; a name of its own file comes first."""
        return [
            [
                number
                for name in one.names
                for number in self._of_file.get(one.file, {}).get(name, self._of_all.get(name, ()))
            ]
            for one in self._all
        ]


@lru_cache(maxsize=256)
def definitions(path: str, text: str) -> tuple[Definition, ...]:
    """Return the definitions of a C file."""
    macros, rest = _macros_apart(text)
    found: list[tuple[str, list[str]]] = list(macros)
    for piece in _pieces(tokens(rest)):
        found += _defined_by(piece)
    is_header = path.endswith(".h")
    return tuple(
        Definition(
            name,
            path,
            hash_of(body),
            names_in(body),
            not is_header and (body[0] in ("static", "enum") or (name, body) in macros),
        )
        for name, body in found
    )


def _macros_apart(text: str) -> tuple[list[tuple[str, list[str]]], str]:
    """Return the macros of a C file, and the file without any directive."""
    macros, rest = [], []
    for line in without_comments(text).replace("\\\n", " ").splitlines():
        defined = _DEFINE.match(line)
        if defined is not None:
            macros.append((defined[1], list(tokens(line))))
        elif not line.lstrip().startswith("#"):
            rest.append(line)
    return macros, "\n".join(rest)


def _pieces(of: Iterable[str]) -> Iterator[list[str]]:
    """Yield what stands at the top of a file one by one: a function, or all up to a semicolon."""
    piece: list[str] = []
    depth = 0
    is_function = False
    for token in of:
        if token == "{" and depth == 0:
            is_function = piece[-1:] == [")"]
        depth += (token in _OPENS) - (token in _CLOSES)
        piece.append(token)
        if depth == 0 and (token == ";" or (token == "}" and is_function)):
            yield piece
            piece, is_function = [], False


def _defined_by(piece: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the names that a piece defines, each with the tokens that count."""
    if piece[-1] == "}":
        yield piece[piece.index("(") - 1], piece
    elif piece[0] == "enum" and "{" in piece:
        for constant in _at_commas(piece[piece.index("{") + 1 : -2]):
            if "=" in constant:
                yield constant[0], ["enum", *constant]
    elif "=" in piece:
        yield from ((name, piece) for name in _initialised(piece))


def _initialised(piece: list[str]) -> Iterator[str]:
    """Yield the variables that get a first value."""
    depth = 0
    name = ""
    for token in piece:
        if token == "=" and depth == 0:
            yield name
        elif depth == 0 and token.isidentifier():
            name = token
        depth += (token in _OPENS) - (token in _CLOSES)


def _at_commas(of: list[str]) -> Iterator[list[str]]:
    """Yield the parts between commas outside of brackets."""
    part: list[str] = []
    depth = 0
    for token in of:
        depth += (token in _OPENS) - (token in _CLOSES)
        if token == "," and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part
