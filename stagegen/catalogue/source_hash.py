"""The hash of a routine, over its compiled source without comments and layout.

The measurements of a log count only for routines that have not changed since. So the hash covers
all parts of a routine, and nothing that only people read: its template, all that this includes,
and what these reach of the code that all routines share (:mod:`stagegen.catalogue.shared_code`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stagegen.catalogue.c_tokens import hash_of, names_in, tokens
from stagegen.catalogue.collective import Collective
from stagegen.catalogue.shared_code import SharedCode
from stagegen.catalogue.templates import SKELETON, Templates
from stagegen.data import ENGINES
from stagegen.errors import InputError

_TAKEN_IN = re.compile(r"\{%-?\s*(?:include|import|extends|from)\s+(.*?)\s*(?:-?%\}|\simport\s)")
_INCLUDED = re.compile(r'^#include "(\w+)\.h"$', re.MULTILINE)
_TABLES = re.compile(r'^#include "\{\{ function \}\}\.tables\.h"$', re.MULTILINE)
_NAMED = re.compile(r"""["'](?P<path>[^"']+)["']""")

#: What runs around a routine: its name in the shared code, for any collective and for a reduction.
_AROUND, _AROUND_REDUCTION = "coll_run_inside", "coll_run_reduction"

#: The template of the files of tables that the routines of a collective include.
TABLES_TEMPLATE = "_tables.h.j2"


@dataclass(frozen=True)
class _File:
    """The parts of a file that count.

    Attributes:
        hash: the hash of its tokens.
        names: the names that occur in it.
        taken_in: the names of the templates that it takes in, as it writes them.
        included: the names of the headers beside it that it includes.
        has_tables: whether it includes the tables of the routine.
    """

    hash: str
    names: frozenset[str]
    taken_in: tuple[str, ...]
    included: tuple[str, ...]
    has_tables: bool


class SourceHashes:
    """The hashes of templates; each file is looked at once.

    Args:
        templates: the files.

    Raises:
        InputError: the definitions of the shared code cannot be told apart, or it lacks one that
            runs around routines.
    """

    def __init__(self, templates: Templates):
        self._templates = templates
        self._files: dict[str, _File] = {}
        self._shared = SharedCode({path: templates.text(path) for path in _shared_files(templates)})
        self._hashes: dict[tuple[tuple[str, ...], str, bool], str] = {}
        for name in (_AROUND, _AROUND_REDUCTION):
            if not self._shared.has(name):
                raise InputError(f"no C file defines {name}, which runs routines", SKELETON)

    def of(self, paths: tuple[str, ...], collective: Collective, is_native: bool) -> str:
        """Return the hash of files, of all that they take in, and of the shared code they reach.

        Args:
            paths: of the files: a routine's template, and its collective's view.
            collective: of the routine; the template of its tables is in the folder of this name.
            is_native: whether the routine gets the application's arguments as they are.

        Raises:
            InputError: a template includes one that does not exist, or that it names by a variable.
        """
        key = paths, collective.name, is_native
        if key not in self._hashes:
            self._hashes[key] = self._hash(paths, collective, is_native)
        return self._hashes[key]

    def _hash(self, paths: Iterable[str], collective: Collective, is_native: bool) -> str:
        files = [self._file(path) for path in self._with_taken_in(paths, collective.name)]
        names = frozenset[str]().union(*(file.names for file in files))
        if not is_native:
            names |= {_AROUND, _AROUND_REDUCTION} if collective.reduces else {_AROUND}
        return hash_of((*(file.hash for file in files), self._shared.hash_from(names)))

    def _with_taken_in(self, paths: Iterable[str], collective: str) -> Iterable[str]:
        """Return files and all that they take in, each once, in an order that does not vary."""
        seen: dict[str, None] = {}
        waiting = [*paths]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen[path] = None
                file = self._file(path)
                waiting += (self._named(name, path) for name in reversed(file.taken_in))
                waiting += self._engines(file)
                if file.has_tables:
                    waiting.append(self._tables(path, collective))
        return seen

    def _file(self, path: str) -> _File:
        if path not in self._files:
            text = self._templates.text(path)
            compiled = tuple(tokens(text))
            self._files[path] = _File(
                hash_of(compiled),
                names_in(compiled),
                tuple(_TAKEN_IN.findall(text)),
                tuple(engines_included(text)),
                _TABLES.search(text) is not None,
            )
        return self._files[path]

    def _tables(self, path: str, collective: str) -> str:
        """Return the template of the tables that a file includes."""
        tables = f"{collective}/{TABLES_TEMPLATE}"
        if not self._templates.has(tables):
            problem = f"there is no {tables} for its tables; write it, or use {{% tables %}}"
            raise InputError(problem, self._templates.where(path))
        return tables

    def _engines(self, file: _File) -> Iterator[str]:
        """Yield the files of the engines that a file includes."""
        for name in file.included:
            for suffix in (".h", ".c"):
                engine = f"{ENGINES}/{name}{suffix}"
                if self._templates.has(engine):
                    yield engine

    def _named(self, name: str, path: str) -> str:
        """Return the included file."""
        match = _NAMED.fullmatch(name)
        if match is not None:
            found = match["path"].removeprefix("/")
            if self._templates.has(found):
                return found
        problem = f"includes {name}, which is no template"
        advice = "name a file of templates/ between quotation marks"
        raise InputError(f"{problem}; {advice}", self._templates.where(path))


def _shared_files(templates: Templates) -> Iterator[str]:
    """Yield the files of the code that all routines share."""
    yield from templates.matching(f"{SKELETON}/*.c")
    yield from templates.matching(f"{SKELETON}/*.h")


def engines_included(text: str) -> list[str]:
    """Return the names of the headers beside it that a C file or its template includes."""
    return _INCLUDED.findall(text)
