"""What a routine reaches of the code that all routines share: the plain C of ``libcoll/``.

The rule, without a compiler: a text reaches each definition that it names, and what that one names
in turn. A definition is something that can change a time or a result: a function's body, a macro,
a variable with its first value, a constant with its value. Declarations, types, includes and
comments are none. A constant without a value counts from the last one before it that has one. A
``static`` name, a macro and a constant of a C file are known in this file only.

Of the branches of an ``#if``, all count. A file whose definitions cannot be told apart is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from stagegen.catalogue.c_tokens import hash_of, names_in, tokens_of_c, without_comments
from stagegen.errors import InputError

_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)")
_BRANCH = re.compile(r"\s*#\s*(if|el|endif)")
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
#: What the lines of an ``#if`` are among the tokens.
_IF, _ELSE, _ENDIF = "#if", "#el", "#endif"
#: Words that have brackets of their own in a declaration: parts of a type, and attributes.
_SPECIFIER = re.compile("__attribute__|__asm__|asm|_Atomic|_Alignas|alignas|(__)?typeof(__)?")
_KEYWORD = re.compile(
    r"""
    auto|bool|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if
    |inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef
    |union|unsigned|void|volatile|while|_Alignas|_Atomic|_Bool|_Complex|_Generic|_Noreturn
    |_Static_assert|_Thread_local|alignas|__attribute__|__asm__|asm|(__)?typeof(__)?
    """,
    re.VERBOSE,
)


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

    def has(self, name: str) -> bool:
        """Tell whether there is such a definition that all files know."""
        return name in self._of_all

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


class _Found(NamedTuple):
    """What a file defines: the name, the tokens that count, whether a C file alone knows it."""

    name: str
    body: list[str]
    is_local: bool


class _Piece(NamedTuple):
    """What stands at the top level of a file: a function, or all up to a semicolon.

    Attributes:
        tokens: of it.
        heads: of a function where its body begins in them; several if branches share the body.
    """

    tokens: list[str]
    heads: list[int]


class _NotUnderstoodError(Exception):
    """A file is written in a way that the rule does not know."""


@lru_cache(maxsize=256)
def definitions(path: str, text: str) -> tuple[Definition, ...]:
    """Return the definitions of a C file.

    Raises:
        InputError: they cannot be told apart.
    """
    macros, rest = _macros_apart(text)
    try:
        found = [*macros, *chain.from_iterable(map(_defined_by, _pieces(rest)))]
        for one in found:
            _check_name(one.name, one.body)
    except _NotUnderstoodError as error:
        raise InputError(f"its definitions cannot be told apart: {error}", path) from error
    is_header = path.endswith(".h")
    return tuple(
        Definition(name, path, hash_of(body), names_in(body), is_local and not is_header)
        for name, body, is_local in found
    )


def _check_name(name: str, body: list[str]) -> None:
    if not name.isidentifier() or _KEYWORD.fullmatch(name):
        raise _NotUnderstoodError(f"`{name}` is no name, in `{_beginning(body)}`")


def _beginning(of: list[str]) -> str:
    """Return the first tokens, for messages."""
    return " ".join(of[:12])


def _macros_apart(text: str) -> tuple[list[_Found], list[str]]:
    """Return the macros of a C file, and its other tokens; of directives only branches."""
    macros, rest = [], []
    for line in without_comments(text).replace("\\\n", " ").splitlines():
        defined, branch = _DEFINE.match(line), _BRANCH.match(line)
        if defined is not None:
            macros.append(_Found(defined[1], tokens_of_c(line), is_local=True))
        elif branch is not None:
            rest.append(f"#{branch[1]}")
        elif not line.lstrip().startswith("#"):
            rest += tokens_of_c(line)
    return macros, rest


def _pieces(of: Iterable[str]) -> Iterator[_Piece]:
    """Yield what stands at the top level of a file, one by one.

    Raises:
        _NotUnderstoodError: something does not end, or begins with the body of a function.
    """
    piece = _Piece([], [])
    depth = 0
    branched: list[int] = []
    for token in of:
        if token in (_IF, _ELSE, _ENDIF):
            depth = _depth_in_branch(token, depth, branched)
            continue
        if token == "{" and depth == 0 and _is_head(piece.tokens):
            piece.heads.append(len(piece.tokens))
        depth += _opened(token)
        piece.tokens.append(token)
        if depth < 0 or piece.tokens[0] in ("{", "}"):
            raise _NotUnderstoodError(f"`{token}` after `{_beginning(piece.tokens)}`")
        if depth == 0 and (token == ";" or (token == "}" and piece.heads)):
            yield piece
            piece = _Piece([], [])
    if piece.tokens:
        raise _NotUnderstoodError(f"`{_beginning(piece.tokens)}` does not end")


def _depth_in_branch(line: str, depth: int, branched: list[int]) -> int:
    """Return how many brackets are open after a line of an ``#if``: all its branches begin alike.

    Args:
        line: which one it is.
        depth: how many are open before it.
        branched: how many were open before each ``#if`` that has not ended; brought up to date.

    Raises:
        _NotUnderstoodError: there is no ``#if``.
    """
    if line == _IF:
        branched.append(depth)
    elif not branched:
        raise _NotUnderstoodError("there is an #else or #endif without #if")
    elif line == _ELSE:
        return branched[-1]
    else:
        branched.pop()
    return depth


def _is_head(of: list[str]) -> bool:
    """Tell whether what stands before a brace at the top level is the head of a function."""
    return _plain(of)[-1:] == [")"] and "=" not in _outside(of)


def _defined_by(piece: _Piece) -> Iterator[_Found]:
    """Yield what a piece defines."""
    of = piece.tokens
    if piece.heads:
        is_local = "static" in _outside(of[: piece.heads[0]])
        yield from (_Found(_declared(of[:head]), of, is_local) for head in piece.heads)
    else:
        yield from (_Found(name, body, is_local=True) for name, body in _constants(of))
        yield from (_Found(name, of, "static" in _outside(of)) for name in _variables(of))


def _variables(of: list[str]) -> Iterator[str]:
    """Yield the variables that get a first value."""
    for one in _parts(of, ","):
        declared, *value = _parts(one, "=")
        if value:
            yield _declared(declared)


def _constants(of: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the constants that count, each with the tokens that do."""
    plain = _plain(of)
    for at, token in enumerate(plain):
        if token == "enum":
            opening = next((n for n in (at + 1, at + 2) if plain[n : n + 1] == ["{"]), None)
            if opening is not None:
                yield from _counted(_parts(plain[opening + 1 : _partner(plain, opening)], ","))


def _counted(constants: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the constants of an enum from the first value on, each with the last value before."""
    since_value: list[str] = []
    for constant in filter(None, constants):
        if "=" in constant:
            since_value = constant
        elif since_value:
            since_value = since_value + constant
        if since_value:
            yield constant[0], ["enum", *since_value]


def _declared(head: list[str]) -> str:
    """Return the name in a declaration: of a function up to its body, of a variable to its value.

    It is the last word, or it stands before or within the last brackets: ``f(int)``,
    ``(*f)(int)``, ``(*f(int))(int)``.
    """
    rest = _plain(head)
    while rest[-1:] == ["]"]:
        rest = rest[: _partner(rest, len(rest) - 1)]
    if rest[-1:] != [")"]:
        return rest[-1] if rest else ""
    before, inside = _at_last_brackets(rest)
    if before[-1:] == [")"]:
        return _declared(_at_last_brackets(before)[1])
    return _declared(inside if inside[:1] == ["*"] else before)


def _at_last_brackets(of: list[str]) -> tuple[list[str], list[str]]:
    """Return what stands before the brackets at the end, and within."""
    at = _partner(of, len(of) - 1)
    return of[:at], of[at + 1 : -1]


def _plain(of: list[str]) -> list[str]:
    """Return a declaration without attributes and such, which have brackets of their own."""
    plain: list[str] = []
    at = 0
    while at < len(of):
        if _SPECIFIER.fullmatch(of[at]) and of[at + 1 : at + 2] == ["("]:
            at = _partner(of, at + 1)
        else:
            plain.append(of[at])
        at += 1
    return plain


def _partner(of: list[str], at: int) -> int:
    """Return where the bracket is that belongs to a bracket.

    Raises:
        _NotUnderstoodError: there is none.
    """
    step = 1 if of[at] in _OPENS else -1
    depth = 0
    while 0 <= at < len(of):
        depth += _opened(of[at])
        if depth == 0:
            return at
        at += step
    raise _NotUnderstoodError(f"a bracket has no other one in `{_beginning(of)}`")


def _outside(of: list[str]) -> list[str]:
    """Return the tokens outside of brackets."""
    outside: list[str] = []
    depth = 0
    for token in of:
        if depth == 0:
            outside.append(token)
        depth += _opened(token)
    return outside


def _parts(of: list[str], separator: str) -> list[list[str]]:
    """Return the parts between separators outside of brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in of:
        depth += _opened(token)
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _opened(token: str) -> int:
    """Return how many brackets a token opens: 1, -1 or 0."""
    return (token in _OPENS) - (token in _CLOSES)
